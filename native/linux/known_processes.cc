#include "linux/known_processes.h"

#include <utility>

#include "linux/proc_files.h"

namespace exitwatch {

void KnownProcesses::ReadAll(ProcessWitness& witness, const std::atomic<bool>& stop,
                             const OnLeaderGone& on_leader_gone) {
  table_.clear();
  ForEachProcess([&](int32_t pid) {
    ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
    const ProcessWitness::Life life = witness.Open(pid, &handle);
    ProcStat stat;
    if (life == ProcessWitness::Life::kAlive && witness.ReadStat(pid, &stat)) {
      const std::optional<uint32_t> uid = witness.ReadUid(pid);
      const uint64_t inode = witness.Inode(handle);
      // What was read by number is of this process if it was not reaped meanwhile.
      if (witness.Look(handle) != ProcessWitness::Life::kGone) {
        table_.insert_or_assign(pid, ProcessEntry(stat, inode, uid));
        if (stat.IsLeaderGone()) {
          on_leader_gone(pid, std::exchange(handle, ProcessWitness::kNoHandle));
        }
      }
    }
    witness.Close(handle);
    return !stop;
  });
}

// Mostly a kernel thread; or a program that the kernel starts (core handlers, modprobe), which is a
// process like any other.
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
