#ifndef EXITWATCH_LINUX_BPF_REFUSAL_H_
#define EXITWATCH_LINUX_BPF_REFUSAL_H_

#include <string>

namespace exitwatch {

// Why a BPF program of ours cannot be used; src/sources has the sentences. The order is known
// there.
struct BpfRefusal {
  enum class Reason : int {
    kNone = 0,
    kNotWanted,       // it was not asked for
    kNoCapabilities,  // neither CAP_BPF nor CAP_PERFMON
    kNoBpf,           // no CAP_BPF
    kNoPerfmon,       // no CAP_PERFMON
    kBlocked,         // bpf(2) fails in spite of the capabilities: seccomp, or a security module
    kConfidential,    // kernel lockdown
    kNoBtf,           // no /sys/kernel/btf/vmlinux
    kOtherKernel,     // a kernel without a field or a helper that it takes; see detail
    kRefused,         // by the verifier; see detail
    kSystem,          // see number and detail
    kForeignPid,      // not in the host's pid namespace
    kLockedMemory,    // RLIMIT_MEMLOCK has no room for it, before Linux 5.11
    kNoTrial,         // whether bpf(2) is deadly (seccomp) cannot be tried: no child is allowed
  };

  Reason reason = Reason::kNone;
  int number = 0;      // errno
  std::string detail;  // a field, a system call, or the verifier's words

  explicit operator bool() const { return reason != Reason::kNone; }
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_REFUSAL_H_
