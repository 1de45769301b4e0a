#ifndef EXITWATCH_CORE_SIGNAL_RECORD_H_
#define EXITWATCH_CORE_SIGNAL_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "core/proc_stat.h"

namespace exitwatch {

// One signal that was generated for a process, or that the OOM killer has chosen it: as the signal
// trace writes it in the kernel, in the context of the sender; and as it crosses to JavaScript,
// byte for byte: src/trace/signal-records.ts reads the same layout.
struct SignalRecord {
  enum Flags : uint32_t {
    kNoInfo = 1u << 0,      // SEND_SIG_NOINFO: the kernel sent it on behalf of the sender
    kPrivileged = 1u << 1,  // SEND_SIG_PRIV: the kernel sent it
    kGroup = 1u << 2,       // to the process, not to one thread
    kSenderExiting = 1u << 3,
    kSenderKernel = 1u << 4,   // the sender is a kernel thread
    kDeadly = 1u << 5,         // with this the process began to die
    kCaught = 1u << 6,         // the process had a handler for it, and did not block it
    kSenderStack = 1u << 7,    // the siginfo was made by a system call of the sender
    kOom = 1u << 8,            // the OOM killer did it
    kToItself = 1u << 9,       // the sender is the very thread that it was sent to
    kSenderTraces = 1u << 10,  // the sender traces the process (ptrace(2))
    kIgnored = 1u << 11,       // the process ignores it, but blocks it as well
  };

  static constexpr size_t kAncestors = 4;
  struct Ancestor {
    int32_t pid;  // 0: there is none
    char name[kNameBytes];
  };

  uint64_t time_ns;   // CLOCK_MONOTONIC
  uint64_t start_ns;  // of the process, CLOCK_BOOTTIME; for JavaScript, in clock ticks
  uint64_t inode;     // of the process, of pidfs; 0 where not known
  uint64_t cgroup;    // of the sender: the id of its cgroup in the v2 hierarchy; 0 where not known
  uint64_t memory;    // which address space; for JavaScript 0
  double clock_ms;    // what to add to time_ns, in ms, to have CLOCK_REALTIME; the program has 0
  int32_t pid;        // of the process
  int32_t sender_pid;
  uint32_t sender_uid;  // effective
  int32_t signal;       // 0: none, the OOM killer has chosen it
  int32_t code;         // si_code, where there is a siginfo
  uint32_t flags;
  char name[kNameBytes];  // of the process
  char sender_name[kNameBytes];
  Ancestor ancestors[kAncestors];  // of the sender, its parent first
};
static_assert(sizeof(SignalRecord) == 184 && offsetof(SignalRecord, pid) == 48 &&
                  offsetof(SignalRecord, name) == 72 && offsetof(SignalRecord, ancestors) == 104,
              "the program writes, and JavaScript reads this layout");

// What the program and user space share, beside the records.
struct SignalTraceState {
  uint32_t eager;  // 1: every record wakes the reader; otherwise only a buffer that is half full
  uint32_t unused;
  uint64_t lost;  // records that did not fit into the ring buffer
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_SIGNAL_RECORD_H_
