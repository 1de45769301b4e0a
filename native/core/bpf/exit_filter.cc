#include "core/bpf/exit_filter.h"

#include <arpa/inet.h>

#include "core/parse/proc_event.h"

namespace exitwatch {

namespace {

constexpr uint32_t kWholeDatagram = 0xffffffff;
constexpr uint32_t kKthreadd = 2;  // parent of all kernel threads; its pid is fixed

sock_filter Statement(uint16_t code, uint32_t k) { return {code, 0, 0, k}; }

// Loads are big-endian on every machine: the constants are swapped instead of the data.
sock_filter LoadWord(uint32_t offset) { return Statement(BPF_LD | BPF_W | BPF_ABS, offset); }

// Positions in the program below. Jump() turns them into distances.
enum Place : uint8_t {
  kIsExit = 3,
  kIsExec = 5,
  kIsCoredump = 6,
  kIsFork = 7,
  kForkParent = 8,
  kCode = 10,
  kLeader = 12,
  kIsOwn = 16,
  kPass = 17,
  kDrop = 18,
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
      /*  4 */ JumpIfEqual(kProcEventNone, 4, kPass, kIsExec),
      /*  5 */ JumpIfEqual(kProcEventExec, kIsExec, kPass, kIsCoredump),
      /*  6 */ JumpIfEqual(kProcEventCoredump, kIsCoredump, kPass, kIsFork),
      /*  7 */ JumpIfEqual(kProcEventFork, kIsFork, kForkParent, kDrop),
      /*  8 */ LoadWord(wire::kForkParentTgid),
      /*  9 */ JumpIfEqual(kKthreadd, 9, kPass, kDrop),
      /* 10 */ LoadWord(wire::kExitCode),
      /* 11 */ JumpIfEqual(0, 11, kLeader, kPass),
      /* 12 */ LoadWord(wire::kExitPid),
      /* 13 */ Statement(BPF_MISC | BPF_TAX, 0),
      /* 14 */ LoadWord(wire::kExitTgid),
      /* 15 */ Jump(BPF_JEQ | BPF_X, 0, 15, kPass, kIsOwn),
      /* 16 */ JumpIfEqual(own_tgid, kIsOwn, kPass, kDrop),
      /* 17 */ Statement(BPF_RET | BPF_K, kWholeDatagram),
      /* 18 */ Statement(BPF_RET | BPF_K, 0),
  };
}

}  // namespace exitwatch
