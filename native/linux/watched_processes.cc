#include "linux/watched_processes.h"

#include <algorithm>
#include <utility>

#include "linux/pidfd.h"
#include "linux/proc_files.h"

namespace exitwatch {

namespace {

using Life = ProcessWitness::Life;

bool IsOver(Life life) { return life == Life::kDead || life == Life::kGone; }

}  // namespace

WatchedProcesses::Result WatchedProcesses::Add(int32_t pid, uint64_t start_ticks, uint64_t inode,
                                               SystemError* error) {
  // Pin the process, make sure that it is the one that was meant, register, and look again: what
  // has changed in between is seen by the last look, what changes later by the stream.
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd) {
    if (IsNoSuchProcess(errno)) return Result::kGone;
    *error = {Failure::kSystem, errno, "pidfd_open"};
    return Result::kFailed;
  }
  ProcStat stat;
  const bool has_stat = ReadProcStat(pid, &stat);
  const std::optional<uint32_t> uid = ReadProcUid(pid);
  if (!has_stat || LookAtPidfd(pidfd.Get()) == Life::kGone) return Result::kGone;
  const uint64_t actual_inode = PidfdInode(pidfd.Get());
  if (stat.start_ticks != start_ticks || (inode != 0 && inode != actual_inode)) {
    return Result::kGone;
  }
  owner_clock_.Sample();
  const uint64_t now_ns = owner_clock_.Now();
  set_.Add({pid, ProcessEntry(stat, actual_inode, uid), now_ns});

  const bool is_whole = ReadProcStat(pid, &stat) && !stat.IsZombie() && !HasDeadThread(pid, stat);
  const bool is_over = IsOver(LookAtPidfd(pidfd.Get()));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!armed_ || is_over || !is_whole) {
    const uint64_t alive_ns = is_over ? owner_clock_.TimeOfTick(start_ticks) : now_ns;
    doubts_.push_back({pid, start_ticks, actual_inode, std::move(pidfd), alive_ns, armed_});
    if (armed_) wake_();
  }
  return Result::kArmed;
}

void WatchedProcesses::Remove(int32_t pid, uint64_t start_ticks, uint64_t inode) {
  set_.Remove(pid, start_ticks, inode);
  const std::lock_guard<std::mutex> lock(mutex_);
  doubts_.erase(std::remove_if(doubts_.begin(), doubts_.end(),
                               [&](const Doubt& doubt) {
                                 return doubt.pid == pid && doubt.start_ticks == start_ticks &&
                                        (inode == 0 || doubt.inode == inode);
                               }),
                doubts_.end());
  if (!armed_) return;
  removed_.push_back(pid);
  wake_();
}

void WatchedProcesses::Arm() {
  const std::lock_guard<std::mutex> lock(mutex_);
  armed_ = true;
}

void WatchedProcesses::Check(ProcessWitness& witness, ThreadGroupAggregator& aggregator,
                             bool all_told) {
  std::vector<Doubt> doubts;
  std::vector<int32_t> removed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    doubts.swap(doubts_);
    removed.swap(removed_);
  }
  for (const int32_t pid : removed) {
    if (!all_told && !set_.Contains(pid)) aggregator.Forget(pid);
  }
  for (Doubt& doubt : doubts) {
    if (!set_.Contains(doubt.pid)) continue;
    ProcStat stat;
    if (!IsOver(witness.Look(doubt.pidfd.Get())) && witness.ReadStat(doubt.pid, &stat) &&
        !stat.IsZombie() && !HasDeadThread(doubt.pid, stat)) {
      continue;
    }
    aggregator.Adopt(
        {doubt.pid, doubt.start_ticks, doubt.inode, 0}, doubt.pidfd.Release(), doubt.alive_ns,
        doubt.was_armed && all_told ? ThreadGroup::Cause::kWatched : ThreadGroup::Cause::kFound);
  }
}

WatchedProcesses::Ended WatchedProcesses::CheckAll(ProcessWitness& witness,
                                                   ThreadGroupAggregator& aggregator,
                                                   uint64_t told_ns) {
  Ended ended;
  for (const Watch& watch : set_.List()) {
    if (aggregator.IsEnding(watch.pid)) continue;
    const uint64_t alive_ns = std::max(watch.since_ns, told_ns);
    const GroupIdentity identity = {watch.pid, watch.process.start_ticks, watch.process.inode, 0};
    ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
    const Life life = witness.Open(watch.pid, &handle);
    ProcStat stat;
    const bool has_stat = handle != ProcessWitness::kNoHandle &&
                          witness.ReadStat(watch.pid, &stat) && witness.Look(handle) != Life::kGone;
    const uint64_t inode = handle == ProcessWitness::kNoHandle ? 0 : witness.Inode(handle);
    // Only what was seen counts: gone, or another process by its inode or its start.
    const bool is_other =
        !IsSameGroup({watch.pid, has_stat ? stat.start_ticks : 0, inode, 0}, identity);
    if (life == Life::kGone || is_other) {
      ended.count++;
      aggregator.Presume(identity, alive_ns);
    } else if (IsOver(life) || (!has_stat && inode != 0) ||
               (has_stat && (stat.IsZombie() || HasDeadThread(watch.pid, stat)))) {
      // Dead, or without its first thread, or hidden: its handle tells the rest.
      if (IsOver(life)) ended.count++;
      aggregator.Adopt(identity, std::exchange(handle, ProcessWitness::kNoHandle), alive_ns,
                       ThreadGroup::Cause::kLost);
    } else if (!has_stat) {
      ended.is_complete = false;
    }
    witness.Close(handle);
  }
  return ended;
}

void WatchedProcesses::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  doubts_.clear();
}

}  // namespace exitwatch
