#include "linux/system/numbered_processes.h"

#include <cerrno>
#include <csignal>
#include <limits>
#include <optional>

#include "linux/system/proc_files.h"

namespace exitwatch {

namespace {

// While a process is being released, or an exec replaces its first thread, /proc shows a
// meaningless state for some microseconds.
constexpr int kReadings = 10;

bool IsGone(int32_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

}  // namespace

ProcessState LookAtNumber(int32_t pid, ProcStat* stat) {
  for (int i = 0; i < kReadings; i++) {
    // Even if /proc hides the process (hidepid), kill(2) shows that the pid is in use.
    if (!ReadProcStat(pid, stat)) return IsGone(pid) ? ProcessState::kGone : ProcessState::kUnknown;
    if (stat->threads == 0) continue;
    const std::optional<int32_t> group = ReadProcGroup(pid);
    if (!group) continue;
    if (*group != pid) return ProcessState::kGone;
    return stat->IsZombie() && stat->threads == 1 ? ProcessState::kDead : ProcessState::kAlive;
  }
  return ProcessState::kUnknown;
}

ProcessState NumberedProcesses::Open(int32_t pid, Handle* handle) {
  ProcStat stat;
  const ProcessState state = LookAtNumber(pid, &stat);
  if (state != ProcessState::kAlive && state != ProcessState::kDead) return state;
  do {
    last_ = last_ == std::numeric_limits<Handle>::min() ? ProcessWitness::kNoHandle - 1 : last_ - 1;
  } while (processes_.count(last_) != 0);
  processes_.emplace(last_, Process{pid, stat.start_ticks});
  *handle = last_;
  return state;
}

ProcessState NumberedProcesses::Look(Handle handle) const {
  const auto found = processes_.find(handle);
  if (found == processes_.end()) return ProcessState::kUnknown;
  ProcStat stat;
  const ProcessState state = LookAtNumber(found->second.pid, &stat);
  if (state != ProcessState::kAlive && state != ProcessState::kDead) return state;
  return stat.start_ticks == found->second.start_ticks ? state : ProcessState::kGone;
}

}  // namespace exitwatch
