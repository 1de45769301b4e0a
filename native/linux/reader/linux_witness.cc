#include "linux/reader/linux_witness.h"

#include "linux/system/pidfd.h"
#include "linux/system/proc_files.h"
#include "linux/system/stat_code_trial.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

ProcessState LinuxWitness::Open(int32_t pid, Handle* handle) {
  UniqueFd pidfd = OpenPidfd(pid);
  // If a thread has the pid now, the process that had it is gone.
  if (!pidfd && IsPidfdDenied(errno)) return numbered_.Open(pid, handle);
  if (!pidfd) return IsNoSuchProcess(errno) ? ProcessState::kGone : ProcessState::kUnknown;
  const ProcessState state = Look(pidfd.Get());
  if (state == ProcessState::kDead || state == ProcessState::kAlive) *handle = pidfd.Release();
  return state;
}

void LinuxWitness::Close(Handle handle) {
  if (NumberedProcesses::IsHandle(handle)) {
    numbered_.Close(handle);
  } else {
    UniqueFd closing(handle);
  }
}

uint64_t LinuxWitness::Inode(Handle handle) {
  return NumberedProcesses::IsHandle(handle) ? 0 : PidfdInode(handle);
}

ProcessState LinuxWitness::Look(Handle handle) {
  return NumberedProcesses::IsHandle(handle) ? numbered_.Look(handle) : LookAtPidfd(handle);
}

bool LinuxWitness::Hold(Handle handle, int32_t pid) {
  return !NumberedProcesses::IsHandle(handle) && held_.Add(handle, pid);
}

bool LinuxWitness::ReadStat(int32_t pid, ProcStat* stat) { return ReadProcStat(pid, stat); }

std::optional<uint32_t> LinuxWitness::ReadUid(int32_t pid) { return ReadProcUid(pid); }

std::optional<int32_t> LinuxWitness::ReadExitStatus(Handle handle) {
  if (NumberedProcesses::IsHandle(handle)) return {};
  return PidfdExitStatus(handle);
}

bool LinuxWitness::StatTellsStatus() { return StatCodeIsStatus(); }

bool LinuxWitness::MayReadExitCode(int32_t pid) { return MayReadProcExitCode(pid); }

}  // namespace exitwatch
