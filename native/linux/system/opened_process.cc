#include "linux/system/opened_process.h"

#include <cerrno>

#include "linux/system/pidfd.h"
#include "linux/system/proc_files.h"

namespace exitwatch {

SystemError OpenedProcess::Open(int32_t pid) {
  pidfd = OpenPidfd(pid);
  if (!pidfd) {
    if (IsNoSuchProcess(errno)) return {Failure::kSystem, ESRCH, "pidfd_open"};
    return PidfdOpenFailed(errno);
  }
  const bool has_stat = ReadProcStat(pid, &stat);
  const int error = errno;
  // The pid belongs to this process until it is reaped, so the file was its own, too.
  if (LookAtPidfd(pidfd.Get()) == ProcessState::kGone) {
    return {Failure::kSystem, ESRCH, "pidfd_open"};
  }
  if (!has_stat) return {Failure::kNoProc, error, "open"};
  inode = PidfdInode(pidfd.Get());
  return {};
}

bool IsGone(const SystemError& error) {
  return error.code == Failure::kSystem && error.number == ESRCH;
}

}  // namespace exitwatch
