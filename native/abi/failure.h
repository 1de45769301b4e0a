#ifndef EXITWATCH_ABI_FAILURE_H_
#define EXITWATCH_ABI_FAILURE_H_

namespace exitwatch {

// Why an operation failed. src/native/failures.ts has a sentence for each code.
enum class Failure : int {
  kNone = 0,
  kSystem,           // see errno and syscall
  kForeignNetwork,   // not in the host's network namespace
  kForeignPid,       // not in the host's pid namespace
  kForeignUser,      // not in the host's user namespace
  kNotPermitted,     // before Linux 6.6: CAP_NET_ADMIN
  kNoConnector,      // the kernel was built without CONFIG_CONNECTOR or CONFIG_PROC_EVENTS
  kNoPidfd,          // pidfd_open(2) is missing or forbidden
  kNoProc,           // /proc is not mounted, or belongs to another pid namespace
  kSilent,           // subscribed, but events do not arrive
  kDescriptorLimit,  // RLIMIT_NOFILE leaves no descriptor to spare
};

// Why a BPF program of ours cannot be used. src/sources/downgrade.ts has a sentence for each code.
enum class Refusal : int {
  kNone = 0,
  kNotWanted,       // not requested
  kNoCapabilities,  // neither CAP_BPF nor CAP_PERFMON
  kNoBpf,           // no CAP_BPF
  kNoPerfmon,       // no CAP_PERFMON
  kBlocked,         // bpf(2) fails despite the capabilities: seccomp, or a security module
  kConfidential,    // kernel lockdown
  kNoBtf,           // no /sys/kernel/btf/vmlinux
  kOtherKernel,     // the kernel lacks a field or a helper that the program needs; see detail
  kRefused,         // by the verifier; see detail
  kSystem,          // see number and detail
  kForeignPid,      // not in the host's pid namespace
  kLockedMemory,    // before Linux 5.11: RLIMIT_MEMLOCK is too small
  kNoTrial,         // cannot test whether seccomp kills on bpf(2): no child could be created
};

}  // namespace exitwatch

#endif  // EXITWATCH_ABI_FAILURE_H_
