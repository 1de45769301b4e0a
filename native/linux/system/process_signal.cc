#include "linux/system/process_signal.h"

#include <sys/syscall.h>

#include "linux/system/pidfd.h"
#include "linux/system/proc_files.h"

namespace exitwatch {

namespace {

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

}  // namespace

SystemError SignalProcess(int32_t pid, uint64_t start_ticks, uint64_t inode, int signal,
                          ProcessState* state) {
  *state = ProcessState::kGone;
  const UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd) return IsNoSuchProcess(errno) ? SystemError{} : PidfdOpenFailed(errno);
  ProcStat stat;
  const bool has_stat = ReadProcStat(pid, &stat);
  const int error = errno;
  // If the process has not been reaped yet, it had the pid while its file was read.
  const ProcessState seen = LookAtPidfd(pidfd.Get());
  if (seen == ProcessState::kGone) return {};
  if (!has_stat) return {Failure::kNoProc, error, "open"};
  if (stat.start_ticks != start_ticks) return {};
  if (inode != 0 && inode != PidfdInode(pidfd.Get())) return {};
  *state = seen;
  if (seen == ProcessState::kDead || signal == 0) return {};
  if (syscall(SYS_pidfd_send_signal, pidfd.Get(), signal, nullptr, 0) == 0) return {};
  if (errno != ESRCH) return {Failure::kSystem, errno, "pidfd_send_sig"};
  *state = ProcessState::kGone;
  return {};
}

}  // namespace exitwatch
