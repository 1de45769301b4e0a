#include "linux/bpf/bpf_permission.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "linux/bpf/seccomp_trial.h"
#include "linux/system/small_file.h"

namespace exitwatch {

namespace {

using Reason = BpfRefusal::Reason;

constexpr int kSysAdmin = 21;  // CAP_SYS_ADMIN, from which Linux 5.8 split off the other two
constexpr int kPerfmon = 38;   // CAP_PERFMON
constexpr int kBpf = 39;       // CAP_BPF

bool HasCapability(const __user_cap_data_struct (&data)[2], int capability) {
  return (data[capability / 32].effective >> (capability % 32) & 1) != 0;
}

void TryBpf() { syscall(SYS_bpf, -1, nullptr, 0); }

}  // namespace

BpfRefusal AskBpfPermission() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return {Reason::kSystem, errno, "capget"};
  if (!HasCapability(data, kSysAdmin)) {
    const bool has_bpf = HasCapability(data, kBpf);
    const bool has_perfmon = HasCapability(data, kPerfmon);
    if (!has_bpf) return {has_perfmon ? Reason::kNoBpf : Reason::kNoCapabilities, 0, ""};
    if (!has_perfmon) return {Reason::kNoPerfmon, 0, ""};
  }
  switch (TryWithSeccomp(TryBpf)) {
    case SeccompTrial::kHarmless:
      return {};
    case SeccompTrial::kDeadly:
      return {Reason::kBlocked, 0, ""};
    case SeccompTrial::kNoChild:
      break;
  }
  return {Reason::kNoTrial, errno, "clone"};
}

bool IsKernelConfidential() {
  return ReadSmallFile("/sys/kernel/security/lockdown").find("[confidentiality]") !=
         std::string::npos;
}

}  // namespace exitwatch
