#ifndef EXITWATCH_ABI_SIGNAL_RECORD_H_
#define EXITWATCH_ABI_SIGNAL_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "abi/names.h"

namespace exitwatch {

// Of a process that sent a signal.
struct Ancestor {
  int32_t pid;  // 0: there is none
  char name[kNameBytes];
};
constexpr size_t kAncestors = 4;

// One moment in the life of a signal, as the signal trace writes it in the kernel; and as it
// crosses to JavaScript, byte for byte.
//
// Three kinds of them:
//  - a signal was generated for a process: written by the sender (signal_generate);
//  - kTaken: a thread took a signal, and ends its process by it (signal_deliver). A tracer has had
//    its say by then, and the siginfo is the one that was taken;
//  - `signal` is 0: the OOM killer has chosen the process (mark_victim).
struct SignalRecord {
  enum Flags : uint32_t {
    kNoInfo = 1u << 0,      // SEND_SIG_NOINFO: the kernel sent it on behalf of the sender
    kPrivileged = 1u << 1,  // SEND_SIG_PRIV: the kernel sent it
    kGroup = 1u << 2,       // to the process, not to one thread
    kSenderExiting = 1u << 3,
    kSenderKernel = 1u << 4,  // the sender is a kernel thread
    kDeadly = 1u << 5,        // with this the process began to die
    kInfoLost = 1u << 6,     // its siginfo did not fit: the thread that takes it finds an empty one
    kSenderStack = 1u << 7,  // the siginfo was made by a system call of the sender
    kOom = 1u << 8,          // the OOM killer did it
    kToItself = 1u << 9,     // the sender is the very thread that it was sent to
    kSenderTraces = 1u << 10,    // the sender traces the process (ptrace(2))
    kIgnored = 1u << 11,         // the process ignores it, but blocks it as well
    kTaken = 1u << 12,           // a thread ends its process by it; see above
    kTraced = 1u << 13,          // the thread that it was sent to, or that took it, has a tracer
    kInSyscall = 1u << 14,       // no interrupt sent it, but a system call of the sender
    kBlocked = 1u << 15,         // the thread that it was sent to blocks it
    kMayBeInSyscall = 1u << 16,  // whether kInSyscall holds cannot be told
  };

  // The sender of kTaken is the thread's tracer, or its parent: whose pid the kernel puts into the
  // siginfo of a signal that a tracer injects.
  uint64_t time_ns;       // CLOCK_MONOTONIC
  uint64_t start_ns;      // of the process, CLOCK_BOOTTIME; for JavaScript, in clock ticks
  uint64_t inode;         // of the process, of pidfs; 0 where not known
  uint64_t cgroup;        // of the sender: the id of its cgroup in the v2 hierarchy, or 0
  uint64_t memory;        // which address space; for JavaScript 0
  double clock_ms;        // what to add to time_ns, in ms, to have CLOCK_REALTIME
  uint64_t sender_start;  // of the sending process, CLOCK_BOOTTIME, in ns
  uint64_t info[2];       // what follows si_code in the siginfo: si_pid and si_uid, si_value, …
  int32_t pid;            // of the process
  int32_t thread;         // the id of the thread that it was sent to, or that took it
  int32_t sender_pid;
  int32_t sender_thread;     // the id of the thread that sent it
  int32_t sender_pid_there;  // what the process calls the sender; 0: it does not see its namespace
  uint32_t sender_uid;       // effective
  int32_t signal;            // 0: none, the OOM killer has chosen it
  int32_t code;              // si_code, where there is a siginfo
  uint32_t flags;
  char name[kNameBytes];  // of the process
  char sender_name[kNameBytes];
  Ancestor ancestors[kAncestors];  // of the sender, its parent first
};

}  // namespace exitwatch

#endif  // EXITWATCH_ABI_SIGNAL_RECORD_H_
