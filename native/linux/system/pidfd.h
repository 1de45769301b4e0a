#ifndef EXITWATCH_LINUX_SYSTEM_PIDFD_H_
#define EXITWATCH_LINUX_SYSTEM_PIDFD_H_

#include <cstdint>
#include <optional>

#include "core/groups/process_witness.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// pidfd_open(2), Linux 5.3; glibc has a wrapper only since 2.36. Invalid with errno set on failure.
UniqueFd OpenPidfd(int32_t pid);

// Whether OpenPidfd() failed with this errno because no process has the pid (ESRCH), or a thread
// other than its process's first has it (ENOENT, on older kernels EINVAL).
bool IsNoSuchProcess(int error);

// The state of the process behind the descriptor, from poll(2).
ProcessState LookAtPidfd(int pidfd);

// The pidfs inode (Linux 6.9): 64 bits, never reused within a boot. 0 on older kernels, where all
// pidfds share one inode.
uint64_t PidfdInode(int pidfd);

// The id of the process's cgroup in the v2 hierarchy (Linux 6.13), even after its exit; 0 if
// unknown.
uint64_t PidfdCgroup(int pidfd);

// Whether OpenPidfd() failed with this errno because the kernel lacks pidfd_open(2), or a seccomp
// filter forbids it.
bool IsPidfdDenied(int error);

// The error for an errno of pidfd_open(2), unless IsNoSuchProcess().
SystemError PidfdOpenFailed(int error);

struct PidfdAbilities {
  bool has_inodes = false;       // Linux 6.9
  bool has_exit_status = false;  // Linux 6.15
};

// Tests them with a child that exits at once.
SystemError TryPidfd(PidfdAbilities* abilities);

// The exit code from PIDFD_GET_INFO (Linux 6.15), available only after the process was reaped.
std::optional<int32_t> PidfdExitStatus(int pidfd);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_PIDFD_H_
