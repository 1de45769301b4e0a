#include "linux/bpf_permission.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>

#include "linux/unique_fd.h"

namespace exitwatch {

namespace {

using Reason = BpfRefusal::Reason;

constexpr int kSysAdmin = 21;  // CAP_SYS_ADMIN, which both others were split from in Linux 5.8
constexpr int kPerfmon = 38;   // CAP_PERFMON
constexpr int kBpf = 39;       // CAP_BPF

bool HasCapability(const __user_cap_data_struct (&data)[2], int capability) {
  return (data[capability / 32].effective >> (capability % 32) & 1) != 0;
}

std::string ReadSmallFile(const char* path) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  char text[4096];
  const ssize_t size = RetryOnEintr([&] { return read(file.Get(), text, sizeof(text)); });
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

// A seccomp filter may answer a call with an errno, or with the end of the process: systemd's
// SystemCallFilter= does. That is tried out by another process.
bool BpfWouldKill() {
  if (ReadSmallFile("/proc/thread-self/status").find("\nSeccomp:\t2") == std::string::npos) {
    return false;
  }
  // A fork without a signal at its end, which is nobody's business here.
  const long child = syscall(SYS_clone, 0, 0, 0, 0, 0);
  if (child == 0) {
    // Its end is no crash: nobody is to collect it, also by a pipe (core(5)).
    prctl(PR_SET_DUMPABLE, 0);
    syscall(SYS_bpf, -1, nullptr, 0);
    _exit(0);
  }
  if (child < 0) return true;
  int status = 0;
  const long waited =
      RetryOnEintr([&] { return waitpid(static_cast<pid_t>(child), &status, __WALL); });
  return waited != child || !WIFEXITED(status);
}

}  // namespace

BpfRefusal::Reason AskBpfPermission() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return Reason::kSystem;
  if (!HasCapability(data, kSysAdmin)) {
    const bool has_bpf = HasCapability(data, kBpf);
    const bool has_perfmon = HasCapability(data, kPerfmon);
    if (!has_bpf) return has_perfmon ? Reason::kNoBpf : Reason::kNoCapabilities;
    if (!has_perfmon) return Reason::kNoPerfmon;
  }
  return BpfWouldKill() ? Reason::kBlocked : Reason::kNone;
}

bool IsKernelConfidential() {
  return ReadSmallFile("/sys/kernel/security/lockdown").find("[confidentiality]") !=
         std::string::npos;
}

}  // namespace exitwatch
