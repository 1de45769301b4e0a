#ifndef EXITWATCH_LINUX_SYSTEM_PIDFD_H_
#define EXITWATCH_LINUX_SYSTEM_PIDFD_H_

#include <cstdint>
#include <optional>

#include "core/groups/process_witness.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// pidfd_open(2), Linux 5.3; glibc has a wrapper since 2.36 only. Invalid with errno set on failure.
UniqueFd OpenPidfd(int32_t pid);

// What OpenPidfd() fails with where nobody has the pid (ESRCH), or a thread that is not its
// process's first (ENOENT, on older kernels EINVAL).
bool IsNoSuchProcess(int error);

// Whether the process behind the descriptor lives, by poll(2).
ProcessState LookAtPidfd(int pidfd);

// The inode of pidfs (Linux 6.9): 64 bits, never repeated within a boot. 0 on older kernels, where
// all pidfds share one inode.
uint64_t PidfdInode(int pidfd);

// The id of its cgroup in the v2 hierarchy, since Linux 6.13 also when it has ended; 0 where that
// is not known.
uint64_t PidfdCgroup(int pidfd);

// What OpenPidfd() fails with where the kernel does not have it, or a seccomp filter forbids it.
bool IsPidfdDenied(int error);

// What the errno of pidfd_open(2) means, unless IsNoSuchProcess().
SystemError PidfdOpenFailed(int error);

struct PidfdAbilities {
  bool has_inodes = false;       // Linux 6.9
  bool has_exit_status = false;  // Linux 6.15
};

// Tries them, with a child that ends at once.
SystemError TryPidfd(PidfdAbilities* abilities);

// PIDFD_GET_INFO's exit code (Linux 6.15): only of a process that was reaped.
std::optional<int32_t> PidfdExitStatus(int pidfd);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_PIDFD_H_
