#include "core/groups/group_stages.h"

#include <algorithm>
#include <utility>

#include "core/groups/group_inspection.h"

namespace exitwatch {

namespace {

using Stage = ThreadGroup::Stage;

constexpr uint64_t kMillisecond = 1'000'000;

// The last thread's exit event comes after its release: usually microseconds later, or a few time
// slices later if the thread was preempted in between. That is likely, because it has just woken
// its parent.
constexpr uint64_t kLateEventNs = 20 * kMillisecond;

// How much time an exec gets between the exit of the first thread and its exec event. After that, a
// process with a first thread counts as a new one that got the pid within the same clock tick.
constexpr uint64_t kExecNs = 2000 * kMillisecond;

// How long a dead process waits for its record if only the record has its core bit or its status.
// The last thread wakes the waiters of its process, and may lose its CPU to them before it writes
// the record. On a usable machine, no scheduler starves a thread for this long.
constexpr uint64_t kRecordNs = 5000 * kMillisecond;

// How long to keep the leftovers of a group whose exit was already reported.
constexpr uint64_t kOrphanNs = 100 * kMillisecond;

}  // namespace

GroupStages::GroupStages(ProcessWitness& witness, uint64_t status_timeout_ns, GroupAgenda& agenda)
    : witness_(witness),
      status_timeout_ns_(status_timeout_ns),
      agenda_(agenda),
      late_event_ns_(kLateEventNs) {}

void GroupStages::SetStream(StreamKind stream) {
  stream_ = stream;
  late_event_ns_ = stream == StreamKind::kNone ? 0 : kLateEventNs;
}

GroupStages::Exited GroupStages::OnLeaderExit(ThreadGroup& group, const ProcEvent& event) {
  group.AddLeaderExit(event);
  if (group.stage == Stage::kDead) {
    // If the handle had the status, this event was all that was missing.
    const uint64_t late_ns = group.answers.group_status ? 0 : late_event_ns_;
    group.times.settle_ns = std::min(group.times.settle_ns, witness_.Now() + late_ns);
    return Exited::kOn;
  }
  if (!group.events.released) {
    if (group.stage == Stage::kCollecting) {
      group.stage = Stage::kLeaderGone;
      group.times.settle_ns = 0;
      agenda_.Confirm(group);
    }
    return Exited::kOn;
  }
  // The kernel released the leader before it made the event, so the whole group is dead. Either
  // this was its last thread, or another one was preempted before its own event.
  if (group.stage == Stage::kHeld) {
    OnHandleReady(group, group.times.alive_ns);
    return Exited::kOn;
  }
  MarkDead(group, event.timestamp_ns);
  return group.events.dumpers.empty() && !MayLackCode(group) ? Exited::kEnded : Exited::kOn;
}

void GroupStages::MarkDead(ThreadGroup& group, uint64_t now_ns) {
  group.stage = Stage::kDead;
  group.times.confirmed_ns = now_ns;
  group.times.settle_ns = now_ns;
  agenda_.Settle(group);
  if (group.answers.has_doubtful_stat && group.answers.group_status &&
      (*group.answers.group_status & ~kCoreFlag) != group.LastCode()) {
    // The code is another thread's or another process's. In both cases an exit event is on its way.
    group.times.settle_ns = now_ns + late_event_ns_;
    return;
  }
  if (group.answers.group_status || group.LastCode() != 0) return;
  // See MayLackCode(). Or another thread exited before the first one.
  group.times.settle_ns = now_ns + late_event_ns_;
}

// The first thread exited with 0, as in most processes, and no witness can answer any more: if
// other threads outlived it, the status is the code of one of them. Or it is certain that others
// did, and the first thread's code need not be the process's.
bool GroupStages::MayLackCode(const ThreadGroup& group) const {
  if (group.answers.group_status || group.IsConclusive()) return false;
  const bool has_only_zero = group.events.leader_known && group.events.leader_code == 0 &&
                             group.events.thread_code == 0 && !group.answers.ending_status;
  return group.leader_first || (stream_ == StreamKind::kThreads && has_only_zero);
}

bool GroupStages::Confirm(ThreadGroup& group) {
  switch (InspectGroup(witness_, group)) {
    case GroupState::kDead:
      MarkDead(group, witness_.Now());
      break;
    case GroupState::kLeaderGone:
      group.stage = Stage::kHeld;
      group.leader_first = true;
      group.times.alive_ns = witness_.Now();
      Hold(group);
      break;
    case GroupState::kExeced:
      return false;
    case GroupState::kExecedOrReused:
      group.seen_alive = true;
      if (witness_.Now() > group.events.leader_ns + kExecNs) {
        MarkDead(group, witness_.Now());
      } else {
        group.times.settle_ns = witness_.Now() + kRetryNs;
      }
      break;
    case GroupState::kUnknown:
      group.times.settle_ns = witness_.Now() + kRetryNs;
      break;
  }
  return true;
}

// Codes of threads are kept only while the group is alive, or while the exit event of its first
// thread may still be on its way.
bool GroupStages::Validate(ThreadGroup& group) {
  const bool is_alive = IsGroupAlive(witness_, group);
  if (group.stage == Stage::kHeld) return true;
  if (is_alive) return group.events.thread_code != 0 || group.events.core_announced;
  // A thread that announced a core dump has yet to exit.
  const uint64_t wait_ns =
      group.events.dumpers.empty() ? kOrphanNs : std::max(kOrphanNs, status_timeout_ns_);
  group.times.settle_ns = witness_.Now() + wait_ns;
  agenda_.Expire(group);
  return true;
}

void GroupStages::TakeOver(ThreadGroup& group, const GroupIdentity& identity,
                           ProcessWitness::Handle handle, uint64_t alive_ns,
                           ThreadGroup::Cause cause) {
  group.stage = Stage::kHeld;
  group.cause = cause;
  group.handle = handle;
  group.inode = witness_.Inode(handle);
  group.start_ticks = identity.start_ticks;
  group.times.alive_ns = alive_ns;
}

void GroupStages::Hold(ThreadGroup& group) {
  if (witness_.Hold(group.handle, group.pid)) return;
  group.times.settle_ns = witness_.Now() + kRetryNs;
  agenda_.Poll(group);
}

void GroupStages::OnHandleReady(ThreadGroup& group, uint64_t alive_since_ns) {
  if (group.handle == ProcessWitness::kNoHandle || group.answers.group_status) return;
  const ProcessState state = witness_.Look(group.handle);
  if (state == ProcessState::kAlive || state == ProcessState::kUnknown) return;

  const uint64_t now_ns = witness_.Now();
  agenda_.StopAwaiting(group);
  if (group.stage != Stage::kDead) {
    group.stage = Stage::kDead;
    agenda_.Settle(group);
    group.times.confirmed_ns = now_ns;
    group.times.alive_ns = std::max(group.times.alive_ns, alive_since_ns);
    group.times.settle_ns =
        now_ns + (group.events.leader_known ? late_event_ns_ : status_timeout_ns_);
  }

  ReadDeadGroup(witness_, group, state);
  if (group.answers.group_status || group.answers.ending_status) {
    // If the leader's exit event has not been seen yet, it may be on its way, and would be mistaken
    // for another process's.
    group.times.settle_ns = group.events.leader_known ? now_ns : now_ns + late_event_ns_;
  } else if (state == ProcessState::kGone) {
    group.times.settle_ns = std::min(group.times.settle_ns, now_ns + late_event_ns_);
  }
}

void GroupStages::AddHandle(ThreadGroup& group, ProcessWitness::Handle handle) {
  agenda_.StopAwaiting(group);
  group.handle = handle;
  if (!group.answers.group_status || group.answers.has_doubtful_stat) {
    group.ForgetStat();
    group.inode = witness_.Inode(handle);
    ReadDeadGroup(witness_, group, witness_.Look(handle));
  }
  const uint64_t now_ns = witness_.Now();
  if (group.answers.group_status) {
    group.times.settle_ns = std::min(group.times.settle_ns, now_ns);
  } else if (!group.Status()) {
    group.times.settle_ns = std::max(group.times.settle_ns, now_ns + status_timeout_ns_);
  }
}

void GroupStages::Presume(ThreadGroup& group, const GroupIdentity& identity, uint64_t alive_ns,
                          ThreadGroup::Cause cause) {
  group.start_ticks = identity.start_ticks;
  group.expected_inode = identity.inode;
  group.stage = Stage::kDead;
  group.cause = cause;
  group.times.alive_ns = alive_ns;
  group.times.confirmed_ns = witness_.Now();
  group.times.settle_ns = group.times.confirmed_ns + late_event_ns_;
  agenda_.Settle(group);
}

void GroupStages::EndPtraced(ThreadGroup& group, const ProcEvent& event) {
  group.answers.group_status = event.exit_code;
  group.answers.group_status_has_core = true;
  group.times.alive_ns = event.timestamp_ns;
  MarkDead(group, witness_.Now());
  // Wait for its last thread's own exit event, which may be yet to be read.
  group.times.settle_ns = group.times.confirmed_ns + late_event_ns_;
}

void GroupStages::ExpectOthers(ThreadGroup& group) {
  const bool was_seen =
      group.cause == ThreadGroup::Cause::kFound || group.cause == ThreadGroup::Cause::kWatched;
  ProcStat stat;
  if (!was_seen || stream_ == StreamKind::kNone) return;
  if (!witness_.ReadStat(group.pid, &stat) || !stat.IsLeaderGone()) return;
  if (stream_ == StreamKind::kGroups) {
    group.outstanding = ThreadGroup::Outstanding::kRecord;
  } else {
    group.leader_first = group.has_all_codes = true;
  }
}

void GroupStages::ExpectNothing(ThreadGroup& group) {
  if (group.outstanding != ThreadGroup::Outstanding::kNothing) {
    group.outstanding = ThreadGroup::Outstanding::kLost;
  }
  group.has_all_codes = false;
}

uint64_t GroupStages::Deadline(const ThreadGroup& group) const {
  const bool waits_for_core = !group.events.dumpers.empty() && !group.answers.group_status_has_core;
  if (group.stage != Stage::kDead) return group.times.settle_ns;
  const auto at_least = [&group](uint64_t wait_ns) {
    return std::max(group.times.settle_ns, group.times.confirmed_ns + wait_ns);
  };
  if (group.NeedsRecord()) return at_least(kRecordNs);
  if (group.NeedsEvent()) return at_least(status_timeout_ns_);
  if (stream_ == StreamKind::kThreads && group.MayBeFirsts()) return at_least(late_event_ns_);
  // A thread that announced its core dump exits with the group.
  if (!waits_for_core && !MayLackCode(group)) return group.times.settle_ns;
  return at_least(std::max(status_timeout_ns_, late_event_ns_));
}

}  // namespace exitwatch
