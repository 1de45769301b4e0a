#ifndef EXITWATCH_ABI_SIGNAL_RECORD_H_
#define EXITWATCH_ABI_SIGNAL_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "abi/names.h"

namespace exitwatch {

// An ancestor of the process that sent a signal.
struct Ancestor {
  int32_t pid;  // 0: none
  char name[kNameBytes];
};
constexpr size_t kAncestors = 4;

// One step of a signal's delivery, as the signal trace writes it in the kernel and as it crosses to
// JavaScript, byte for byte.
//
// There are three kinds:
//  - a signal was generated for a process; the sender writes it (signal_generate);
//  - kTaken: a thread took a signal that ends its process (signal_deliver). A debugger has already
//    acted on the signal, and the siginfo is the one that was taken;
//  - `signal` is 0: the OOM killer chose the process (mark_victim).
struct SignalRecord {
  enum Flags : uint32_t {
    kNoInfo = 1u << 0,      // SEND_SIG_NOINFO: the kernel sent it on behalf of the sender
    kPrivileged = 1u << 1,  // SEND_SIG_PRIV: the kernel sent it
    kGroup = 1u << 2,       // to the process, not to one thread
    kSenderExiting = 1u << 3,
    kSenderKernel = 1u << 4,     // the sender is a kernel thread
    kDeadly = 1u << 5,           // the process began to die of this signal
    kInfoLost = 1u << 6,         // its siginfo did not fit: the thread takes an empty one
    kSenderStack = 1u << 7,      // a system call of the sender made the siginfo
    kOom = 1u << 8,              // the OOM killer did it
    kToItself = 1u << 9,         // the sender is the thread that the signal was sent to
    kSenderPtraces = 1u << 10,   // the sender ptraces the process
    kIgnored = 1u << 11,         // the process ignores the signal, but also blocks it
    kTaken = 1u << 12,           // a thread took the signal, which ends its process; see above
    kPtraced = 1u << 13,         // the thread that it was sent to, or that took it, is ptraced
    kInSyscall = 1u << 14,       // sent from a system call of the sender, not from an interrupt
    kBlocked = 1u << 15,         // the thread that the signal was sent to blocks it
    kMayBeInSyscall = 1u << 16,  // it is unknown whether kInSyscall holds
    // Only from a recorder:
    kUnhandled = 1u << 17,  // the process has no handler for it
    kReplaced = 1u << 18,   // it overwrote an earlier record like it
    // Not from a recorder:
    kCommandLine = 1u << 19,  // the latest CommandLineRecord of the sender came with this
    // Only from a recorder: the thread blocks the signal, and waits for it (sigtimedwait(2)).
    kAwaited = 1u << 20,
  };

  // For kTaken, the sender is the thread's debugger, or its parent if it has none: when a debugger
  // injects a signal, the kernel puts that pid into the siginfo.
  uint64_t time_ns;   // CLOCK_MONOTONIC
  uint64_t start_ns;  // of the process, CLOCK_BOOTTIME; for JavaScript, in clock ticks
  uint64_t inode;     // of the process, in pidfs; 0 if unknown
  uint64_t cgroup;    // id of the sender's cgroup in the v2 hierarchy; 0 if unknown
  // Identifies the process's address space. For JavaScript: the number of the sender's command
  // line, or 0; see CommandLines.
  uint64_t memory;
  double clock_ms;  // add to time_ns, in ms, to get CLOCK_REALTIME
  // Of the sending process, CLOCK_BOOTTIME, in ns; for JavaScript, CLOCK_MONOTONIC. 0 if unknown.
  uint64_t sender_start;
  uint64_t info[2];  // what follows si_code in the siginfo: si_pid and si_uid, si_value, …
  uint64_t ancestor_cgroups[kAncestors];     // like `cgroup`, of each ancestor
  char sender_program[kSenderProgramBytes];  // the file name; empty if unknown
  int32_t pid;                               // of the process
  int32_t thread;  // id of the thread that the signal was sent to, or that took it
  int32_t sender_pid;
  int32_t sender_thread;     // id of the thread that sent it
  int32_t sender_pid_there;  // the sender's pid in the process's namespace; 0: not visible there
  uint32_t sender_uid;       // effective
  int32_t signal;            // 0: none, the OOM killer chose the process
  int32_t code;              // si_code, if there is a siginfo
  uint32_t flags;
  char name[kNameBytes];  // of the process
  char sender_name[kNameBytes];
  Ancestor ancestors[kAncestors];  // of the sender, its parent first
};

}  // namespace exitwatch

#endif  // EXITWATCH_ABI_SIGNAL_RECORD_H_
