#include "core/exit_filter.h"

#include <arpa/inet.h>

#include "core/proc_event.h"

namespace exitwatch {

namespace {

constexpr uint32_t kWholeDatagram = 0xffffffff;
constexpr uint32_t kKthreadd = 2;  // parent of all kernel threads, by its fixed pid

sock_filter Statement(uint16_t code, uint32_t k) { return {code, 0, 0, k}; }

// Loads are big-endian, whatever the machine: constants are swapped instead of the data.
sock_filter LoadWord(uint32_t offset) { return Statement(BPF_LD | BPF_W | BPF_ABS, offset); }

// Places of the program below; jumps are written as places and turned into distances here.
enum Place : uint8_t {
  kIsExit = 3,
  kIsFork = 6,
  kForkParent = 7,
  kCode = 9,
  kLeader = 11,
  kIsOwn = 15,
  kPass = 16,
  kDrop = 17,
};

sock_filter Jump(uint16_t condition, uint32_t k, uint8_t here, uint8_t if_true, uint8_t if_false) {
  const auto distance = [here](uint8_t place) { return static_cast<uint8_t>(place - here - 1); };
  return {static_cast<uint16_t>(BPF_JMP | condition), distance(if_true), distance(if_false), k};
}

sock_filter JumpIfEqual(uint32_t host_value, uint8_t here, uint8_t if_true, uint8_t if_false) {
  return Jump(BPF_JEQ | BPF_K, htonl(host_value), here, if_true, if_false);
}

}  // namespace

std::vector<sock_filter> BuildExitFilter(uint32_t own_tgid) {
  return {
      /*  0 */ Statement(BPF_LD | BPF_W | BPF_LEN, 0),
      /*  1 */ Jump(BPF_JGE | BPF_K, wire::kDatagramBytes, 1, 2, kPass),
      /*  2 */ LoadWord(wire::kWhat),
      /*  3 */ JumpIfEqual(kProcEventExit, kIsExit, kCode, 4),
      /*  4 */ JumpIfEqual(kProcEventNone, 4, kPass, 5),
      /*  5 */ JumpIfEqual(kProcEventCoredump, 5, kPass, kIsFork),
      /*  6 */ JumpIfEqual(kProcEventFork, kIsFork, kForkParent, kDrop),
      /*  7 */ LoadWord(wire::kForkParentTgid),
      /*  8 */ JumpIfEqual(kKthreadd, 8, kPass, kDrop),
      /*  9 */ LoadWord(wire::kExitCode),
      /* 10 */ JumpIfEqual(0, 10, kLeader, kPass),
      /* 11 */ LoadWord(wire::kExitPid),
      /* 12 */ Statement(BPF_MISC | BPF_TAX, 0),
      /* 13 */ LoadWord(wire::kExitTgid),
      /* 14 */ Jump(BPF_JEQ | BPF_X, 0, 14, kPass, kIsOwn),
      /* 15 */ JumpIfEqual(own_tgid, kIsOwn, kPass, kDrop),
      /* 16 */ Statement(BPF_RET | BPF_K, kWholeDatagram),
      /* 17 */ Statement(BPF_RET | BPF_K, 0),
  };
}

}  // namespace exitwatch
