#include "linux/process_signal.h"

#include <sys/syscall.h>

#include "linux/pidfd.h"
#include "linux/proc_files.h"

namespace exitwatch {

namespace {

using Life = ProcessWitness::Life;

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

}  // namespace

SystemError SignalProcess(int32_t pid, uint64_t start_ticks, uint64_t inode, int signal,
                          ProcessWitness::Life* life) {
  *life = Life::kGone;
  const UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd) return IsNoSuchProcess(errno) ? SystemError{} : PidfdOpenFailed(errno);
  ProcStat stat;
  const bool has_stat = ReadProcStat(pid, &stat);
  const int error = errno;
  // The pid is this process's until it is reaped, and so it was while its file was read.
  const Life seen = LookAtPidfd(pidfd.Get());
  if (seen == Life::kGone) return {};
  if (!has_stat) return {Failure::kNoProc, error, "open"};
  if (stat.start_ticks != start_ticks) return {};
  if (inode != 0 && inode != PidfdInode(pidfd.Get())) return {};
  *life = seen;
  if (seen == Life::kDead || signal == 0) return {};
  if (syscall(SYS_pidfd_send_signal, pidfd.Get(), signal, nullptr, 0) == 0) return {};
  if (errno != ESRCH) return {Failure::kSystem, errno, "pidfd_send_sig"};
  *life = Life::kGone;
  return {};
}

}  // namespace exitwatch
