#include "linux/system/pidfd.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include <atomic>

#include "linux/system/file_status.h"

namespace exitwatch {

namespace {

constexpr long kPidfsMagic = 0x50494446;  // PID_FS_MAGIC of <linux/magic.h>

// struct pidfd_info of <linux/pidfd.h> in its first published size, which every later kernel
// accepts. Declared here because most distributions' headers are older than the kernels.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t ids[11];
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64, "PIDFD_INFO_SIZE_VER0");

constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr uint64_t kPidfdInfoCgroup = 1u << 2;
constexpr uint64_t kPidfdInfoExit = 1u << 3;

constexpr int kTrialStatus = 7;

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

}  // namespace

UniqueFd OpenPidfd(int32_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool IsNoSuchProcess(int error) { return error == ESRCH || error == ENOENT || error == EINVAL; }

ProcessState LookAtPidfd(int pidfd) {
  pollfd entry = {pidfd, POLLIN, 0};
  const int ready = RetryOnEintr([&] { return poll(&entry, 1, 0); });
  if (ready < 0 || (entry.revents & POLLNVAL) != 0) return ProcessState::kUnknown;
  if (ready == 0) return ProcessState::kAlive;
  if ((entry.revents & POLLHUP) != 0) return ProcessState::kGone;
  // Before 6.9 a pidfd does not report POLLHUP: signal 0 distinguishes a zombie from a reaped
  // process.
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
  if (syscall(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0) == -1 && errno == ESRCH) {
    return ProcessState::kGone;
  }
  return ProcessState::kDead;
}

uint64_t PidfdInode(int pidfd) {
  // All pidfds of a kernel are of the same kind: ask once.
  enum Kind : int { kNotAsked, kOfPidfs, kAnonymous };
  static std::atomic<Kind> kind{kNotAsked};
  if (kind == kNotAsked) {
    struct statfs filesystem;
    if (fstatfs(pidfd, &filesystem) != 0) return 0;
    kind = filesystem.f_type == kPidfsMagic ? kOfPidfs : kAnonymous;
  }
  if (kind == kAnonymous) return 0;
  const auto file = ReadFileStatus(pidfd);
  return file ? file->stx_ino : 0;
}

uint64_t PidfdCgroup(int pidfd) {
  PidfdInfo info = {};
  // For a reaped process, the kernel has it only together with the status.
  info.mask = kPidfdInfoCgroup | kPidfdInfoExit;
  if (ioctl(pidfd, kPidfdGetInfo, &info) != 0 || (info.mask & kPidfdInfoCgroup) == 0) return 0;
  return info.cgroup_id;
}

bool IsPidfdDenied(int error) { return error == ENOSYS || error == EPERM || error == EACCES; }

SystemError PidfdOpenFailed(int error) {
  return {IsPidfdDenied(error) ? Failure::kNoPidfd : Failure::kSystem, error, "pidfd_open"};
}

SystemError TryPidfd(PidfdAbilities* abilities) {
  // No exit signal: it would reach the host program.
  const long child = syscall(SYS_clone, 0, 0, 0, 0, 0);
  if (child == 0) _exit(kTrialStatus);
  if (child < 0) return {Failure::kSystem, errno, "clone"};
  const auto pid = static_cast<pid_t>(child);
  const UniqueFd pidfd = OpenPidfd(pid);
  const int error = errno;
  RetryOnEintr([&] { return waitpid(pid, nullptr, __WALL); });
  if (!pidfd) return PidfdOpenFailed(error);
  abilities->has_inodes = PidfdInode(pidfd.Get()) != 0;
  abilities->has_exit_status = PidfdExitStatus(pidfd.Get()) == kTrialStatus << 8;
  return {};
}

std::optional<int32_t> PidfdExitStatus(int pidfd) {
  PidfdInfo info = {};
  info.mask = kPidfdInfoExit;
  if (ioctl(pidfd, kPidfdGetInfo, &info) != 0 || (info.mask & kPidfdInfoExit) == 0) return {};
  return info.exit_code;
}

}  // namespace exitwatch
