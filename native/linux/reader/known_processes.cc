#include "linux/reader/known_processes.h"

#include <utility>

#include "linux/system/proc_files.h"

namespace exitwatch {

void KnownProcesses::ReadAll(ProcessWitness& witness, const std::atomic<bool>& stop,
                             const OnHalfDead& on_half_dead, const OnVanished& on_vanished) {
  const auto before = std::exchange(table_, {});
  const uint64_t read_ns = std::exchange(begin_ns_, witness.Now());
  bool is_complete = true;
  is_complete &= ForEachProcess([&](int32_t pid) {
    ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
    const ProcessState state = witness.Open(pid, &handle);
    ProcStat stat;
    const bool has_stat = state == ProcessState::kAlive && witness.ReadStat(pid, &stat);
    const std::optional<uint32_t> uid = has_stat ? witness.ReadUid(pid) : std::nullopt;
    const bool is_gone =
        state == ProcessState::kGone || state == ProcessState::kDead ||
        (handle != ProcessWitness::kNoHandle && witness.Look(handle) == ProcessState::kGone);
    // Data that was read by number belongs to this process if it was not reaped meanwhile.
    if (has_stat && !is_gone) {
      table_.insert_or_assign(pid, ProcessEntry(stat, witness.Inode(handle), uid));
      if (stat.IsLeaderGone() || HasDeadThread(pid, stat)) {
        on_half_dead({pid, stat.start_ticks, witness.Inode(handle), 0},
                     std::exchange(handle, ProcessWitness::kNoHandle));
      }
    }
    is_complete &= has_stat || is_gone;
    witness.Close(handle);
    return !stop;
  });
  is_complete_ = is_complete;
  end_ns_ = witness.Now();
  for (const auto& [pid, process] : before) {
    // Nothing more is known about a kernel thread that was forked under our eyes.
    if (process.start_ticks == 0 || process.is_kernel_thread) continue;
    const GroupIdentity identity = process.Identity(pid);
    // Keep what was known until the exit is reported, unless another process has the pid.
    const auto [now, has_vanished] = table_.emplace(pid, process);
    if (has_vanished || !IsSameGroup(now->second.Identity(pid), identity)) {
      on_vanished(identity, read_ns);
    } else if (now->second.inode == 0) {
      now->second.inode = process.inode;  // the kernel no longer shows it
    }
  }
}

std::optional<GroupIdentity> KnownProcesses::FindAt(int32_t pid, uint64_t tick) const {
  const auto found = table_.find(pid);
  if (found == table_.end() || found->second.start_ticks > tick) return {};
  // A kernel thread that could not be read.
  if (found->second.start_ticks == 0) return {};
  return found->second.Identity(pid);
}

uint64_t KnownProcesses::UnknownSince(uint64_t ended_ns) const {
  return is_complete_ && ended_ns >= end_ns_ ? begin_ns_ : 0;
}

// Usually a kernel thread. But programs that the kernel starts (core handlers, modprobe) are
// processes like any other.
void KnownProcesses::OnFork(const ProcEvent& event) {
  if (!event.IsLeader()) return;
  ProcStat stat;
  ProcessEntry entry;
  entry.is_kernel_thread = true;
  if (ReadProcStat(event.pid, &stat)) {
    if (!stat.IsKernelThread()) return;
    entry = ProcessEntry(stat, 0, {});
  }
  table_.insert_or_assign(event.pid, entry);
}

std::optional<ProcessEntry> KnownProcesses::Take(int32_t pid, uint64_t end_tick) {
  const auto found = table_.find(pid);
  if (found == table_.end() || found->second.start_ticks > end_tick) return {};
  const ProcessEntry entry = found->second;
  table_.erase(found);
  return entry;
}

}  // namespace exitwatch
