#include "core/thread_group_aggregator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/group_inspection.h"

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// The last thread's exit event comes after its release: by some microseconds, or by a few time
// slices where the thread was preempted in between, as it likes to be: its parent was just woken.
constexpr uint64_t kLateEventNs = 20 * kMillisecond;

// How long an exec may take between the end of the first thread and its announcement, before a
// process that has a first thread is taken for a new one, which was given the pid within the same
// clock tick.
constexpr uint64_t kExecNs = 2000 * kMillisecond;

// How long the exit event of a process that a handle told may take.
constexpr uint64_t kOutstandingNs = 10'000 * kMillisecond;

// How long a dead process waits for its record, if only that tells its core bit or its status: the
// last thread wakes those who wait for its process, and may lose its processor to them before it
// writes the record. Longer than any scheduler lets a thread starve on a machine that is usable.
constexpr uint64_t kRecordNs = 5000 * kMillisecond;

// Leftovers of a group whose end was told already.
constexpr uint64_t kOrphanNs = 100 * kMillisecond;

// A confirmation that could not be had (no descriptor left) is tried again.
constexpr uint64_t kRetryNs = 10 * kMillisecond;

}  // namespace

ThreadGroupAggregator::ThreadGroupAggregator(ProcessWitness& witness, uint64_t status_timeout_ns,
                                             OnEnd on_end, ExpectedInode expected_inode)
    : witness_(witness),
      status_timeout_ns_(status_timeout_ns),
      late_event_ns_(kLateEventNs),
      on_end_(std::move(on_end)),
      expected_inode_(std::move(expected_inode)) {}

ThreadGroupAggregator::~ThreadGroupAggregator() {
  for (auto& [pid, group] : groups_) witness_.Close(group.handle);
}

ThreadGroup& ThreadGroupAggregator::Group(int32_t pid) {
  return groups_.try_emplace(pid, pid).first->second;
}

void ThreadGroupAggregator::OnExit(const ProcEvent& event) {
  auto found = groups_.find(event.tgid);
  if (!event.IsLeader()) {
    if (event.exit_code == 0) return;
    ThreadGroup& group = Group(event.tgid);
    if (group.IsBeingCollected() && !group.ending_status) AskAbout(group);
    group.AddThreadExit(event);
    Reconsider(group);
    return;
  }

  const auto told = told_before_.find(event.tgid);
  if (told != told_before_.end()) {
    const bool is_its = witness_.Now() < told->second + kOutstandingNs;
    told_before_.erase(told);
    if (is_its) return;
  }

  if (found != groups_.end() && found->second.leader_known) {
    // No exec came in between: this is another process's exit. Unless the exec was lost, or was
    // under way and failed where it could not turn back, which kills.
    ThreadGroup& before = found->second;
    const bool exec_failed = before.seen_alive && (event.exit_code & 0x7f) != 0;
    const bool is_dead = before.stage == ThreadGroup::Stage::kDead;
    if (is_dead || (before.handle == ProcessWitness::kNoHandle && !exec_failed)) {
      if (!is_dead) MarkDead(before, before.last_event_ns);
      if (before.has_doubtful_stat) before.ForgetStat();
      End(before);
      found = groups_.end();
    }
  }
  if (found == groups_.end()) found = groups_.try_emplace(event.tgid, event.tgid).first;

  ThreadGroup& group = found->second;
  group.AddLeaderExit(event);
  if (group.expected_inode == 0 && expected_inode_) {
    group.expected_inode = expected_inode_(event.tgid, event.timestamp_ns);
  }
  if (group.stage == ThreadGroup::Stage::kDead) {
    // What was waited for, where the handle has told the rest.
    const uint64_t late_ns = group.group_status ? 0 : late_event_ns_;
    group.settle_ns = std::min(group.settle_ns, witness_.Now() + late_ns);
    return;
  }
  if (!group.released) {
    if (group.stage == ThreadGroup::Stage::kCollecting) {
      group.stage = ThreadGroup::Stage::kLeaderGone;
      group.settle_ns = 0;
      unconfirmed_.push_back(event.tgid);
    }
    return;
  }
  // Released before the event was made: the whole group is dead. This was its last thread, or
  // another was preempted before its own event.
  if (group.stage == ThreadGroup::Stage::kHeld) {
    OnHandleReady(group.pid, group.alive_ns);
    return;
  }
  MarkDead(group, event.timestamp_ns);
  if (group.dumpers.empty() && !MayLackCode(group)) End(group);
}

void ThreadGroupAggregator::OnFork(const ProcEvent& event) {
  if (!event.IsLeader()) return;
  const auto found = groups_.find(event.tgid);
  if (found == groups_.end() || found->second.stage == ThreadGroup::Stage::kDead) return;
  ThreadGroup& before = found->second;
  const bool is_others = before.leader_known && before.leader_ns <= event.timestamp_ns;
  if (!is_others || before.handle != ProcessWitness::kNoHandle) return;
  // What it does from now on is not what the one before it did: its exec, above all.
  if (before.has_doubtful_stat) before.ForgetStat();
  MarkDead(before, event.timestamp_ns);
}

void ThreadGroupAggregator::OnExec(const ProcEvent& event) {
  // Whatever ended before was the program before: the process has a first thread, and will tell its
  // end by it.
  const auto found = groups_.find(event.tgid);
  if (found == groups_.end()) return;
  ThreadGroup& group = found->second;
  const bool is_dead = group.stage == ThreadGroup::Stage::kDead;
  if (is_dead && event.timestamp_ns > group.confirmed_ns) return;  // the pid is another's
  if (group.cause == ThreadGroup::Cause::kLost || group.leader_ns > event.timestamp_ns) return;
  if (is_dead && group.handle != ProcessWitness::kNoHandle) {
    group.ForgetEvents();  // its handle tells the end of the program after
  } else {
    Erase(event.tgid);
  }
}

void ThreadGroupAggregator::OnCoredump(const ProcEvent& event) {
  const auto [found, is_new] = groups_.try_emplace(event.tgid, event.tgid);
  if (is_new) AskAbout(found->second);
  found->second.AddCoredump(event);
}

// Dead. From here on only the status may still change.
void ThreadGroupAggregator::MarkDead(ThreadGroup& group, uint64_t now_ns) {
  group.stage = ThreadGroup::Stage::kDead;
  group.confirmed_ns = now_ns;
  group.settle_ns = now_ns;
  dead_.push_back(group.pid);
  if (group.has_doubtful_stat && group.group_status &&
      (*group.group_status & ~kCoreFlag) != group.LastCode()) {
    // Another thread's code, or another process's: either's exit event is on its way.
    group.settle_ns = now_ns + late_event_ns_;
    return;
  }
  if (group.group_status || group.LastCode() != 0) return;
  // See MayLackCode(); or another thread had left before the first one.
  group.settle_ns = now_ns + late_event_ns_;
}

// Whether nothing but an event that may be on its way tells the status of a dead process. Its first
// thread ended with 0, as that of most processes does, and nobody can be asked any more: if others
// outlived it, another's code is the status. Or that is certain, and what the first one ended with
// need not be the process's.
bool ThreadGroupAggregator::MayLackCode(const ThreadGroup& group) const {
  if (group.group_status || group.IsConclusive()) return false;
  const bool has_only_zero = group.leader_known && group.leader_code == 0 &&
                             group.thread_code == 0 && !group.ending_status;
  return group.leader_first || (stream_ == Stream::kThreads && has_only_zero);
}

// Something new is known of a group that waited for an event; or it has waited enough.
void ThreadGroupAggregator::Reconsider(ThreadGroup& group) {
  if (std::exchange(group.is_awaited, false)) dead_.push_back(group.pid);
}

void ThreadGroupAggregator::Confirm(ThreadGroup& group) {
  switch (InspectGroup(witness_, group)) {
    case GroupState::kDead:
      MarkDead(group, witness_.Now());
      break;
    case GroupState::kLeaderGone:
      group.stage = ThreadGroup::Stage::kHeld;
      group.leader_first = true;
      group.alive_ns = witness_.Now();
      Hold(group);
      break;
    case GroupState::kExeced:
      Erase(group.pid);
      break;
    case GroupState::kExecedOrReused:
      group.seen_alive = true;
      if (witness_.Now() > group.leader_ns + kExecNs) {
        MarkDead(group, witness_.Now());
      } else {
        group.settle_ns = witness_.Now() + kRetryNs;
      }
      break;
    case GroupState::kUnknown:
      group.settle_ns = witness_.Now() + kRetryNs;
      break;
  }
}

void ThreadGroupAggregator::Hold(ThreadGroup& group) {
  if (witness_.Hold(group.handle, group.pid)) return;
  group.settle_ns = witness_.Now() + kRetryNs;
  polled_.push_back(group.pid);
}

void ThreadGroupAggregator::OnHandleReady(int32_t pid, uint64_t alive_since_ns) {
  const auto found = groups_.find(pid);
  if (found == groups_.end()) return;
  ThreadGroup& group = found->second;
  if (group.handle == ProcessWitness::kNoHandle || group.group_status) return;
  const ProcessWitness::Life life = witness_.Look(group.handle);
  if (life == ProcessWitness::Life::kAlive || life == ProcessWitness::Life::kUnknown) return;

  const uint64_t now_ns = witness_.Now();
  Reconsider(group);
  if (group.stage != ThreadGroup::Stage::kDead) {
    group.stage = ThreadGroup::Stage::kDead;
    dead_.push_back(pid);
    group.confirmed_ns = now_ns;
    group.alive_ns = std::max(group.alive_ns, alive_since_ns);
    group.settle_ns = now_ns + (group.leader_known ? late_event_ns_ : status_timeout_ns_);
  }

  ReadDeadGroup(witness_, group, life);
  if (group.group_status || group.ending_status) {
    // Where its own exit was not seen, it may be on its way, and would be told as another.
    group.settle_ns = group.leader_known ? now_ns : now_ns + late_event_ns_;
  } else if (life == ProcessWitness::Life::kGone) {
    group.settle_ns = std::min(group.settle_ns, now_ns + late_event_ns_);
  }
}

void ThreadGroupAggregator::Adopt(const GroupIdentity& identity, ProcessWitness::Handle handle,
                                  uint64_t alive_ns, ThreadGroup::Cause cause) {
  ThreadGroup& group = Group(identity.pid);
  if (group.handle != ProcessWitness::kNoHandle || group.stage == ThreadGroup::Stage::kDead) {
    witness_.Close(handle);
    return;
  }
  TakeOver(group, identity, handle, alive_ns, cause);
  Hold(group);
  OnHandleReady(identity.pid, alive_ns);
  group.was_held = group.stage == ThreadGroup::Stage::kHeld;
  if (group.was_held) ExpectOthers(group);
}

// Of a process whose first thread had left when it was found: what the stream has yet to tell of
// the others.
void ThreadGroupAggregator::ExpectOthers(ThreadGroup& group) {
  const bool was_seen =
      group.cause == ThreadGroup::Cause::kFound || group.cause == ThreadGroup::Cause::kWatched;
  ProcStat stat;
  if (!was_seen || stream_ == Stream::kNone) return;
  if (!witness_.ReadStat(group.pid, &stat) || !stat.IsLeaderGone()) return;
  if (stream_ == Stream::kGroups) {
    group.outstanding = ThreadGroup::Outstanding::kRecord;
  } else {
    group.leader_first = group.has_all_codes = true;
  }
}

void ThreadGroupAggregator::TakeOver(ThreadGroup& group, const GroupIdentity& identity,
                                     ProcessWitness::Handle handle, uint64_t alive_ns,
                                     ThreadGroup::Cause cause) {
  group.stage = ThreadGroup::Stage::kHeld;
  group.cause = cause;
  group.handle = handle;
  group.inode = witness_.Inode(handle);
  group.start_ticks = identity.start_ticks;
  group.alive_ns = alive_ns;
}

void ThreadGroupAggregator::AdoptDead(const GroupIdentity& identity, ProcessWitness::Handle handle,
                                      uint64_t alive_ns, ThreadGroup::Cause cause,
                                      ThreadGroup::Outstanding outstanding) {
  auto found = groups_.find(identity.pid);
  if (found != groups_.end() && !IsSameGroup(found->second.Identity(), identity)) {
    if (witness_.Look(handle) == ProcessWitness::Life::kGone) {
      // Another process has the pid already, and may be ending, too.
      TellAtOnce(identity, handle, alive_ns, cause);
      return;
    }
    // One that had the pid before.
    if (found->second.stage != ThreadGroup::Stage::kDead) MarkDead(found->second, witness_.Now());
    End(found->second);
    found = groups_.end();
  }
  ThreadGroup& group = Group(identity.pid);
  if (outstanding == ThreadGroup::Outstanding::kRecord) group.outstanding = outstanding;
  if (group.handle != ProcessWitness::kNoHandle) {
    // Of two, the one that may tell the status of a process that was reaped.
    witness_.Close(std::exchange(group.handle, handle));
    group.inode = witness_.Inode(handle);
    OnHandleReady(identity.pid, alive_ns);
    return;
  }
  if (group.stage != ThreadGroup::Stage::kDead) {
    // The kernel's stamp counts more than when we think that it was alive.
    if (group.leader_known) alive_ns = std::min(alive_ns, group.leader_ns);
    TakeOver(group, identity, handle, alive_ns, cause);
    group.outstanding = outstanding;
    OnHandleReady(identity.pid, alive_ns);
    return;
  }
  // Events have told its death; its status may be doubtful.
  Reconsider(group);
  group.handle = handle;
  if (!group.group_status || group.has_doubtful_stat) {
    group.ForgetStat();
    group.inode = witness_.Inode(handle);
    ReadDeadGroup(witness_, group, witness_.Look(handle));
  }
  const uint64_t now_ns = witness_.Now();
  if (group.group_status) {
    group.settle_ns = std::min(group.settle_ns, now_ns);
  } else if (!group.Status()) {
    group.settle_ns = std::max(group.settle_ns, now_ns + status_timeout_ns_);
  }
}

void ThreadGroupAggregator::TellAtOnce(const GroupIdentity& identity, ProcessWitness::Handle handle,
                                       uint64_t alive_ns, ThreadGroup::Cause cause) {
  ThreadGroup group(identity.pid);
  TakeOver(group, identity, handle, alive_ns, cause);
  group.stage = ThreadGroup::Stage::kDead;
  group.confirmed_ns = witness_.Now();
  ReadDeadGroup(witness_, group, ProcessWitness::Life::kGone);
  Tell(group);
  witness_.Close(handle);
}

void ThreadGroupAggregator::SetStream(Stream stream) {
  stream_ = stream;
  late_event_ns_ = stream == Stream::kNone ? 0 : kLateEventNs;
  if (stream == Stream::kNone) ExpectNothing();
  for (auto& [pid, group] : groups_) Reconsider(group);
}

void ThreadGroupAggregator::Presume(const GroupIdentity& identity, uint64_t alive_ns,
                                    ThreadGroup::Cause cause) {
  ThreadGroup& group = Group(identity.pid);
  if (group.stage != ThreadGroup::Stage::kCollecting) return;
  group.start_ticks = identity.start_ticks;
  group.expected_inode = identity.inode;
  group.stage = ThreadGroup::Stage::kDead;
  group.cause = cause;
  group.alive_ns = alive_ns;
  group.confirmed_ns = witness_.Now();
  group.settle_ns = group.confirmed_ns + late_event_ns_;
  dead_.push_back(identity.pid);
}

bool ThreadGroupAggregator::OnTracedExit(const ProcEvent& event, bool has_group_code) {
  ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
  const ProcessWitness::Life life = witness_.Open(event.tgid, &handle);
  if (life == ProcessWitness::Life::kUnknown) return false;
  ProcStat stat;
  const bool is_gone = life == ProcessWitness::Life::kGone ||
                       (witness_.ReadStat(event.tgid, &stat) &&
                        stat.start_ticks > witness_.TickOf(event.timestamp_ns));
  if (!is_gone) {
    Adopt({event.tgid, stat.start_ticks, witness_.Inode(handle), 0}, handle, witness_.Now(),
          ThreadGroup::Cause::kStream);
    if (has_group_code) Group(event.tgid).ending_status = event.exit_code;
    return true;
  }
  witness_.Close(handle);
  // The tracer was quick. Without a code other threads went on, and have told their end.
  if (!has_group_code) return true;
  ThreadGroup& group = Group(event.tgid);
  if (group.stage == ThreadGroup::Stage::kDead) return true;
  group.group_status = event.exit_code;
  group.group_status_has_core = true;
  group.alive_ns = event.timestamp_ns;
  MarkDead(group, witness_.Now());
  // Or its last thread has told it by its own exit, which is yet to be read.
  group.settle_ns = group.confirmed_ns + late_event_ns_;
  return true;
}

void ThreadGroupAggregator::Supersede(const GroupIdentity& identity) {
  const auto found = groups_.find(identity.pid);
  if (found != groups_.end() && IsSameGroup(found->second.Identity(), identity)) {
    Erase(identity.pid);
  }
}

void ThreadGroupAggregator::AskAbout(ThreadGroup& group) {
  if (!std::exchange(group.is_unvalidated, true)) unvalidated_.push_back(group.pid);
}

// Codes of threads whose group has shown nothing else yet: remembered only while the group lives,
// or while the exit of its first thread can still be on its way.
void ThreadGroupAggregator::Validate(ThreadGroup& group) {
  const bool is_alive = IsGroupAlive(witness_, group);
  if (group.stage == ThreadGroup::Stage::kHeld) return;
  if (is_alive) {
    if (group.thread_code == 0 && !group.core_announced) Erase(group.pid);
    return;
  }
  group.orphan = true;
  // Who has announced a core dump has yet to tell its end.
  const uint64_t wait_ns =
      group.dumpers.empty() ? kOrphanNs : std::max(kOrphanNs, status_timeout_ns_);
  group.settle_ns = witness_.Now() + wait_ns;
  orphans_.push_back(group.pid);
}

void ThreadGroupAggregator::Settle(uint64_t stream_ns) {
  // Ends first: what is confirmed in this call has to wait for the stream to pass it.
  for (; !awaited_.empty() && awaited_.front().until_ns <= stream_ns; awaited_.pop_front()) {
    const auto found = groups_.find(awaited_.front().pid);
    if (found != groups_.end()) Reconsider(found->second);
  }
  const auto keep_waiting = [this, stream_ns](int32_t pid) {
    const auto found = groups_.find(pid);
    if (found == groups_.end() || found->second.stage != ThreadGroup::Stage::kDead) return false;
    const uint64_t deadline_ns = Deadline(found->second);
    if (stream_ns >= deadline_ns) {
      End(found->second);
      return false;
    }
    // There may be many of them, for long.
    found->second.is_awaited = MayLackCode(found->second);
    if (found->second.is_awaited) awaited_.push_back({deadline_ns, pid});
    return !found->second.is_awaited;
  };
  dead_.erase(
      std::remove_if(dead_.begin(), dead_.end(), [&](int32_t pid) { return !keep_waiting(pid); }),
      dead_.end());

  for (const int32_t pid : std::exchange(polled_, {})) {
    const auto found = groups_.find(pid);
    if (found == groups_.end() || found->second.stage != ThreadGroup::Stage::kHeld) continue;
    if (stream_ns >= found->second.settle_ns) {
      OnHandleReady(pid, found->second.settle_ns - kRetryNs);
      if (found->second.stage == ThreadGroup::Stage::kHeld) Hold(found->second);
    } else {
      polled_.push_back(pid);
    }
  }

  for (const int32_t pid : std::exchange(unvalidated_, {})) {
    const auto found = groups_.find(pid);
    if (found == groups_.end()) continue;
    found->second.is_unvalidated = false;
    if (found->second.IsBeingCollected()) Validate(found->second);
  }
  orphans_.erase(std::remove_if(orphans_.begin(), orphans_.end(),
                                [this, stream_ns](int32_t pid) {
                                  const auto found = groups_.find(pid);
                                  if (found == groups_.end() ||
                                      found->second.stage != ThreadGroup::Stage::kCollecting ||
                                      !found->second.orphan) {
                                    return true;
                                  }
                                  if (stream_ns < found->second.settle_ns) return false;
                                  groups_.erase(found);
                                  return true;
                                }),
                 orphans_.end());

  for (const int32_t pid : std::exchange(unconfirmed_, {})) {
    const auto found = groups_.find(pid);
    if (found == groups_.end() || found->second.stage != ThreadGroup::Stage::kLeaderGone) continue;
    if (stream_ns >= found->second.settle_ns) Confirm(found->second);
    const auto after = groups_.find(pid);
    if (after != groups_.end() && after->second.stage == ThreadGroup::Stage::kLeaderGone) {
      unconfirmed_.push_back(pid);
    }
  }
}

uint64_t ThreadGroupAggregator::Deadline(const ThreadGroup& group) const {
  const bool waits_for_core = !group.dumpers.empty() && !group.group_status_has_core;
  if (group.stage != ThreadGroup::Stage::kDead) return group.settle_ns;
  if (group.NeedsRecord()) return std::max(group.settle_ns, group.confirmed_ns + kRecordNs);
  if (group.NeedsEvent()) return std::max(group.settle_ns, group.confirmed_ns + status_timeout_ns_);
  if (stream_ == Stream::kThreads && group.MayBeFirsts()) {
    return std::max(group.settle_ns, group.confirmed_ns + late_event_ns_);
  }
  // A thread that announces its core dump ends with the group.
  if (!waits_for_core && !MayLackCode(group)) return group.settle_ns;
  const uint64_t wait_ns = std::max(status_timeout_ns_, late_event_ns_);
  return std::max(group.settle_ns, group.confirmed_ns + wait_ns);
}

uint64_t ThreadGroupAggregator::NextDeadline() const {
  uint64_t next_ns = unvalidated_.empty() ? std::numeric_limits<uint64_t>::max() : 0;
  const auto consider = [&](const std::vector<int32_t>& pids) {
    for (const int32_t pid : pids) {
      const auto found = groups_.find(pid);
      if (found != groups_.end()) next_ns = std::min(next_ns, Deadline(found->second));
    }
  };
  consider(polled_);
  consider(unconfirmed_);
  consider(dead_);
  consider(orphans_);
  return awaited_.empty() ? next_ns : std::min(next_ns, awaited_.front().until_ns);
}

bool ThreadGroupAggregator::HasUntold() const {
  const auto is_untold = [this](int32_t pid) {
    const auto found = groups_.find(pid);
    return found != groups_.end() && found->second.last_event_ns != 0;
  };
  return std::any_of(dead_.begin(), dead_.end(), is_untold) ||
         std::any_of(awaited_.begin(), awaited_.end(),
                     [&](const Awaited& awaited) { return is_untold(awaited.pid); });
}

bool ThreadGroupAggregator::IsEnding(int32_t pid) const {
  const auto found = groups_.find(pid);
  return found != groups_.end() && found->second.stage != ThreadGroup::Stage::kCollecting;
}

bool ThreadGroupAggregator::IsEndingOther(const GroupIdentity& identity) const {
  const auto found = groups_.find(identity.pid);
  return found != groups_.end() && found->second.stage != ThreadGroup::Stage::kCollecting &&
         !IsSameGroup(found->second.Identity(), identity);
}

void ThreadGroupAggregator::ExpectNothing() {
  for (auto& [pid, group] : groups_) {
    if (group.outstanding != ThreadGroup::Outstanding::kNothing) {
      group.outstanding = ThreadGroup::Outstanding::kLost;
    }
    group.has_all_codes = false;
  }
}

void ThreadGroupAggregator::ForgetUnconfirmed() {
  ExpectNothing();
  told_before_.clear();
  for (auto group = groups_.begin(); group != groups_.end();) {
    group = group->second.stage == ThreadGroup::Stage::kCollecting ? groups_.erase(group)
                                                                   : std::next(group);
  }
}

void ThreadGroupAggregator::Forget(int32_t pid) { Erase(pid); }

void ThreadGroupAggregator::End(ThreadGroup& group) {
  const bool is_due = group.outstanding == ThreadGroup::Outstanding::kEvent && !group.leader_known;
  if (is_due && tells_all_) {
    told_before_[group.pid] = group.confirmed_ns;
  }
  Tell(group);
  Erase(group.pid);
}

void ThreadGroupAggregator::Tell(ThreadGroup& group) {
  // A thread's exit within the time in which the group must have died is the time of its death.
  // With another code than the group's it was not the last one.
  const bool has_last_code =
      !group.group_status || (*group.group_status & ~kCoreFlag) == group.LastCode();
  group.ended_by_kernel =
      group.last_event_ns != 0 && group.last_event_ns >= group.alive_ns && has_last_code;
  if (!group.ended_by_kernel) {
    const uint64_t alive_ns = std::max(group.alive_ns, group.last_event_ns);
    group.ended_ns = group.confirmed_ns;
    group.uncertainty_ns = group.confirmed_ns - std::min(group.confirmed_ns, alive_ns);
  } else {
    group.ended_ns = group.last_event_ns;
    // Exits of other threads with 0 are not seen, and one with a code of its own may be on its way:
    // one of them may have been the last.
    const bool last_seen = group.released || (group.LastCode() != 0 && group.Status());
    group.uncertainty_ns =
        last_seen ? 0 : group.confirmed_ns - std::min(group.confirmed_ns, group.last_event_ns);
  }
  on_end_(group);
}

void ThreadGroupAggregator::Erase(int32_t pid) {
  const auto found = groups_.find(pid);
  if (found == groups_.end()) return;
  witness_.Close(found->second.handle);
  groups_.erase(found);
}

}  // namespace exitwatch
