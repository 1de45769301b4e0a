// One idea: every way in which information about a process comes in, and one walk over what is due.
// group_stages.cc decides what becomes of a group.
#include "core/groups/thread_group_aggregator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/groups/group_inspection.h"

namespace exitwatch {

namespace {

using Stage = ThreadGroup::Stage;
using Outstanding = ThreadGroup::Outstanding;

// How late the exit event of a process may come after its handle reported the exit.
constexpr uint64_t kOutstandingNs = 10'000'000'000;

bool HasHandle(const ThreadGroup& group) { return group.handle != ProcessWitness::kNoHandle; }

}  // namespace

ThreadGroupAggregator::ThreadGroupAggregator(ProcessWitness& witness, uint64_t status_timeout_ns,
                                             OnEnd on_end)
    : witness_(witness), on_end_(std::move(on_end)), stages_(witness, status_timeout_ns, agenda_) {}

ThreadGroupAggregator::~ThreadGroupAggregator() { Close(); }

void ThreadGroupAggregator::Close() {
  for (auto& [pid, group] : groups_) witness_.Close(group.handle);
  groups_.clear();
}

ThreadGroup* ThreadGroupAggregator::Find(int32_t pid) {
  const auto found = groups_.find(pid);
  return found == groups_.end() ? nullptr : &found->second;
}

const ThreadGroup* ThreadGroupAggregator::Find(int32_t pid) const {
  const auto found = groups_.find(pid);
  return found == groups_.end() ? nullptr : &found->second;
}

void ThreadGroupAggregator::OnExit(const ProcEvent& event, const EventOwner& owner) {
  if (!event.IsLeader()) {
    if (event.exit_code == 0) return;
    ThreadGroup& group = Group(event.tgid);
    if (group.IsBeingCollected() && !group.answers.ending_status) agenda_.Validate(group);
    group.AddThreadExit(event);
    agenda_.StopAwaiting(group);
    return;
  }
  if (!IsReportedBefore(event)) OnLeaderExit(event, owner);
}

void ThreadGroupAggregator::OnLeaderExit(const ProcEvent& event, EventOwner owner) {
  ThreadGroup* before = Find(event.tgid);
  const bool knows_owner = owner.certainty == EventOwner::Certainty::kKnown ||
                           owner.certainty == EventOwner::Certainty::kContested;
  if (before != nullptr && knows_owner && !IsSameGroup(before->Identity(), owner.process)) {
    if (IsPast(event, *before)) {
      EndByEvent(event, owner);
      return;
    }
    // The owner got the pid from it.
    if (before->stage != Stage::kDead) stages_.MarkDead(*before, event.timestamp_ns);
    if (before->answers.has_doubtful_stat) before->ForgetStat();
    End(*before);
    before = nullptr;
  }
  if (before != nullptr && before->events.leader_known) {
    // With no exec in between, this is another process's exit, unless the exec event was lost, or
    // the exec failed past the point of no return, which kills the process.
    const bool exec_failed = before->seen_alive && (event.exit_code & 0x7f) != 0;
    const bool is_dead = before->stage == Stage::kDead;
    if (is_dead || (!HasHandle(*before) && !exec_failed)) {
      const bool is_known = knows_owner && before->HasIdentity();
      const bool had_later =
          !event.IsOfReleased() && event.timestamp_ns > before->times.confirmed_ns;
      // It may also be the process that an exec has killed, after it had ended the first thread.
      const bool may_be_killed =
          !is_dead && before->events.leader_code == 0 && (event.exit_code & 0x7f) != 0;
      const bool may_be_its = may_be_killed || (before->may_exec && !(is_dead && had_later));
      if (!is_dead) stages_.MarkDead(*before, before->events.last_event_ns);
      if (before->answers.has_doubtful_stat) before->ForgetStat();
      if (is_known && may_be_its) before->certainty = EventOwner::Certainty::kContested;
      End(*before);
      // It cannot belong to the watched process that had the pid last.
      if (is_known && !reports_all_) return;
      if (is_known) owner = {EventOwner::Certainty::kUnobserved, {}, {}};
    }
  }
  ThreadGroup& group = Group(event.tgid);
  group.Expect(owner);
  if (stages_.OnLeaderExit(group, event) == GroupStages::Exited::kEnded) End(group);
}

// Whether the owner of the event had the pid before this other process.
bool ThreadGroupAggregator::IsPast(const ProcEvent& event, const ThreadGroup& other) {
  if (event.IsOfReleased()) return true;
  if (other.events.leader_known && other.events.leader_ns > event.timestamp_ns) return true;
  return HasHandle(other) && witness_.Look(other.handle) != ProcessState::kGone;
}

// Another process with this pid is being dealt with, or is alive.
void ThreadGroupAggregator::EndByEvent(const ProcEvent& event, const EventOwner& owner) {
  ThreadGroup group(event.tgid);
  group.Expect(owner);
  group.AddLeaderExit(event);
  group.stage = Stage::kDead;
  group.times.confirmed_ns = event.timestamp_ns;
  group.DateEnd();
  on_end_(group);
}

// Whether this is the exit event of a process whose handle was faster.
bool ThreadGroupAggregator::IsReportedBefore(const ProcEvent& event) {
  const auto found = ended_early_.find(event.tgid);
  if (found == ended_early_.end()) return false;
  const bool is_its = witness_.Now() < found->second + kOutstandingNs;
  ended_early_.erase(found);
  return is_its;
}

void ThreadGroupAggregator::OnFork(const ProcEvent& event) {
  if (!event.IsLeader()) return;
  ThreadGroup* before = Find(event.tgid);
  if (before == nullptr || before->stage == Stage::kDead || HasHandle(*before)) return;
  const bool is_others =
      before->events.leader_known && before->events.leader_ns <= event.timestamp_ns;
  if (!is_others) return;
  // From now on the pid's events are the new process's, above all its exec.
  if (before->answers.has_doubtful_stat) before->ForgetStat();
  stages_.MarkDead(*before, event.timestamp_ns);
}

void ThreadGroupAggregator::OnExec(const ProcEvent& event) {
  // All earlier exits belong to the program before the exec. The process has a first thread again,
  // and will report its exit through it.
  ThreadGroup* group = Find(event.tgid);
  if (group == nullptr) return;
  const bool is_dead = group->stage == Stage::kDead;
  if (is_dead && event.timestamp_ns > group->times.confirmed_ns) return;  // the pid was reused
  if (group->cause == ThreadGroup::Cause::kLost || group->events.leader_ns > event.timestamp_ns)
    return;
  if (IsExecOfOther(event, *group)) return;
  if (is_dead && HasHandle(*group)) {
    group->ForgetEvents();  // its handle will report how the new program exits
  } else {
    Erase(event.tgid);
  }
}

// Whether a later process with its pid called exec, or may have: the group's own is dead.
bool ThreadGroupAggregator::IsExecOfOther(const ProcEvent& event, ThreadGroup& group) {
  if (!group.events.leader_known || !group.HasIdentity() || HasHandle(group)) return false;
  const GroupIdentity identity = group.Identity();
  const std::optional<GroupIdentity> holder = HolderOf(witness_, group.pid);
  if (!holder || IsSameGroup(*holder, identity)) return false;
  // A first thread that another one's exec ends exits with 0, unless it had exited before.
  if (holder->pid != 0 || group.events.leader_code != 0) {
    if (group.stage != Stage::kDead) stages_.MarkDead(group, witness_.Now());
    group.may_exec = true;
    return true;
  }
  // One of its other threads did, and the new program is gone too. If its exit event does not come,
  // it was another process.
  Erase(identity.pid);
  Presume(identity, event.timestamp_ns);
  return true;
}

void ThreadGroupAggregator::OnCoredump(const ProcEvent& event) {
  const auto [found, is_new] = groups_.try_emplace(event.tgid, event.tgid);
  if (is_new) agenda_.Validate(found->second);
  found->second.AddCoredump(event);
}

void ThreadGroupAggregator::OnHandleReady(int32_t pid, uint64_t alive_since_ns) {
  if (ThreadGroup* group = Find(pid)) stages_.OnHandleReady(*group, alive_since_ns);
}

void ThreadGroupAggregator::Adopt(const GroupIdentity& identity, ProcessWitness::Handle handle,
                                  uint64_t alive_ns, ThreadGroup::Cause cause) {
  ThreadGroup& group = Group(identity.pid);
  // Its exit event came before it was known here: it was being watched while it exited.
  const bool is_unclaimed = group.stage == Stage::kDead && !HasHandle(group) &&
                            !group.HasIdentity() &&
                            identity.start_ticks <= witness_.TickOf(group.events.leader_ns);
  if (is_unclaimed) {
    group.Expect({EventOwner::Certainty::kKnown, identity, {}});
    stages_.AddHandle(group, handle);
    return;
  }
  if (HasHandle(group) || group.stage == Stage::kDead) {
    witness_.Close(handle);
    return;
  }
  stages_.TakeOver(group, identity, handle, alive_ns, cause);
  stages_.Hold(group);
  stages_.OnHandleReady(group, alive_ns);
  group.was_held = group.stage == Stage::kHeld;
  if (group.was_held) stages_.ExpectOthers(group);
}

void ThreadGroupAggregator::AdoptDead(const GroupIdentity& identity, ProcessWitness::Handle handle,
                                      uint64_t alive_ns, ThreadGroup::Cause cause,
                                      Outstanding outstanding) {
  ThreadGroup* other = Find(identity.pid);
  if (other != nullptr && !IsSameGroup(other->Identity(), identity)) {
    if (witness_.Look(handle) == ProcessState::kGone) {
      // Another process already has the pid, and may be exiting too.
      EndAtOnce(identity, handle, alive_ns, cause);
      return;
    }
    // `other` had the pid before.
    if (other->stage != Stage::kDead) stages_.MarkDead(*other, witness_.Now());
    End(*other);
  }
  ThreadGroup& group = Group(identity.pid);
  // An event that has come may be that of a first thread which an exec ended: see ForgetEvents().
  if (outstanding != Outstanding::kNothing) group.outstanding = outstanding;
  if (HasHandle(group)) {
    // Of two handles, keep the one that can return the status of a reaped process.
    witness_.Close(std::exchange(group.handle, handle));
    group.inode = witness_.Inode(handle);
    stages_.OnHandleReady(group, alive_ns);
  } else if (group.stage == Stage::kDead) {
    // Events already reported its death; its status may be in doubt.
    stages_.AddHandle(group, handle);
  } else {
    // The kernel's timestamp outweighs our own estimate of when it was alive.
    if (group.events.leader_known) alive_ns = std::min(alive_ns, group.events.leader_ns);
    stages_.TakeOver(group, identity, handle, alive_ns, cause);
    stages_.OnHandleReady(group, alive_ns);
  }
}

void ThreadGroupAggregator::EndAtOnce(const GroupIdentity& identity, ProcessWitness::Handle handle,
                                      uint64_t alive_ns, ThreadGroup::Cause cause) {
  ThreadGroup group(identity.pid);
  stages_.TakeOver(group, identity, handle, alive_ns, cause);
  group.stage = Stage::kDead;
  group.times.confirmed_ns = witness_.Now();
  ReadDeadGroup(witness_, group, ProcessState::kGone);
  group.DateEnd();
  on_end_(group);
  witness_.Close(handle);
}

void ThreadGroupAggregator::SetStream(StreamKind stream) {
  stages_.SetStream(stream);
  for (auto& [pid, group] : groups_) {
    if (stream == StreamKind::kNone) GroupStages::ExpectNothing(group);
    agenda_.StopAwaiting(group);
  }
}

void ThreadGroupAggregator::Presume(const GroupIdentity& identity, uint64_t alive_ns,
                                    ThreadGroup::Cause cause) {
  ThreadGroup& group = Group(identity.pid);
  if (group.stage == Stage::kCollecting) stages_.Presume(group, identity, alive_ns, cause);
}

bool ThreadGroupAggregator::OnPtracedExit(const ProcEvent& event, bool has_group_code) {
  ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
  const ProcessState state = witness_.Open(event.tgid, &handle);
  if (state == ProcessState::kUnknown) return false;
  ProcStat stat;
  const bool is_gone =
      state == ProcessState::kGone || (witness_.ReadStat(event.tgid, &stat) &&
                                       stat.start_ticks > witness_.TickOf(event.timestamp_ns));
  if (!is_gone) {
    Adopt({event.tgid, stat.start_ticks, witness_.Inode(handle), 0}, handle, witness_.Now(),
          ThreadGroup::Cause::kStream);
    if (has_group_code) Group(event.tgid).answers.ending_status = event.exit_code;
    return true;
  }
  witness_.Close(handle);
  // The debugger was faster. Without a group code, other threads went on and have reported the
  // exit.
  if (!has_group_code) return true;
  ThreadGroup& group = Group(event.tgid);
  if (group.stage != Stage::kDead) stages_.EndPtraced(group, event);
  return true;
}

void ThreadGroupAggregator::Supersede(const GroupIdentity& identity) {
  const ThreadGroup* group = Find(identity.pid);
  if (group != nullptr && IsSameGroup(group->Identity(), identity)) Erase(identity.pid);
}

void ThreadGroupAggregator::Settle(uint64_t stream_ns) {
  // Exits first: what this call confirms must wait until the stream has passed it.
  agenda_.TakeAwaited(stream_ns, [this](int32_t pid) {
    if (ThreadGroup* group = Find(pid)) agenda_.StopAwaiting(*group);
  });
  agenda_.VisitDead([this, stream_ns](int32_t pid) { return KeepsWaiting(pid, stream_ns); });

  agenda_.VisitPolled([this, stream_ns](int32_t pid) {
    ThreadGroup* group = Find(pid);
    if (group == nullptr || group->stage != Stage::kHeld) return false;
    if (stream_ns < group->times.settle_ns) return true;
    stages_.OnHandleReady(*group, group->times.settle_ns - GroupStages::kRetryNs);
    if (group->stage == Stage::kHeld) stages_.Hold(*group);
    return false;
  });

  agenda_.VisitUnvalidated([this](int32_t pid) {
    ThreadGroup* group = Find(pid);
    if (group == nullptr) return false;
    group->agenda.is_unvalidated = false;
    if (group->IsBeingCollected() && !stages_.Validate(*group)) Erase(pid);
    return false;
  });

  agenda_.VisitOrphans([this, stream_ns](int32_t pid) {
    const ThreadGroup* group = Find(pid);
    if (group == nullptr || group->stage != Stage::kCollecting || !group->agenda.orphan)
      return false;
    if (stream_ns < group->times.settle_ns) return true;
    Erase(pid);
    return false;
  });

  agenda_.VisitUnconfirmed([this, stream_ns](int32_t pid) {
    ThreadGroup* group = Find(pid);
    if (group == nullptr || group->stage != Stage::kLeaderGone) return false;
    if (stream_ns >= group->times.settle_ns && !stages_.Confirm(*group)) {
      Erase(pid);
      return false;
    }
    return group->stage == Stage::kLeaderGone;
  });
}

bool ThreadGroupAggregator::KeepsWaiting(int32_t pid, uint64_t stream_ns) {
  ThreadGroup* group = Find(pid);
  if (group == nullptr || group->stage != Stage::kDead) return false;
  const uint64_t deadline_ns = stages_.Deadline(*group);
  if (stream_ns >= deadline_ns) {
    End(*group);
    return false;
  }
  if (!stages_.MayLackCode(*group)) return true;
  agenda_.Await(*group, deadline_ns);
  return false;
}

uint64_t ThreadGroupAggregator::NextDeadline() const {
  return agenda_.NextDeadline([this](int32_t pid) {
    const ThreadGroup* group = Find(pid);
    return group == nullptr ? UINT64_MAX : stages_.Deadline(*group);
  });
}

bool ThreadGroupAggregator::HasUnreported() const {
  return agenda_.AnyDead([this](int32_t pid) {
    const ThreadGroup* group = Find(pid);
    return group != nullptr && group->events.last_event_ns != 0;
  });
}

bool ThreadGroupAggregator::AwaitsRecord() const {
  return agenda_.AnyDead([this](int32_t pid) {
    const ThreadGroup* group = Find(pid);
    return group != nullptr && group->stage == Stage::kDead && group->NeedsRecord();
  });
}

bool ThreadGroupAggregator::IsEnding(int32_t pid) const {
  const ThreadGroup* group = Find(pid);
  return group != nullptr && group->stage != Stage::kCollecting;
}

bool ThreadGroupAggregator::IsEndingOther(const GroupIdentity& identity) const {
  return IsEnding(identity.pid) && !IsSameGroup(Find(identity.pid)->Identity(), identity);
}

bool ThreadGroupAggregator::HasExitEvent(const GroupIdentity& identity) const {
  const ThreadGroup* group = Find(identity.pid);
  if (group == nullptr || !group->events.leader_known) return false;
  return group->HasIdentity() && IsSameGroup(group->Identity(), identity);
}

void ThreadGroupAggregator::ForgetUnconfirmed() {
  ended_early_.clear();
  for (auto group = groups_.begin(); group != groups_.end();) {
    GroupStages::ExpectNothing(group->second);
    const bool is_unconfirmed = group->second.stage == Stage::kCollecting;
    group = is_unconfirmed ? groups_.erase(group) : std::next(group);
  }
}

void ThreadGroupAggregator::Forget(int32_t pid) { Erase(pid); }

void ThreadGroupAggregator::End(ThreadGroup& group) {
  const bool is_due = group.outstanding == Outstanding::kEvent && !group.events.leader_known;
  if (is_due && reports_all_) ended_early_[group.pid] = group.times.confirmed_ns;
  group.DateEnd();
  on_end_(group);
  Erase(group.pid);
}

void ThreadGroupAggregator::Erase(int32_t pid) {
  const auto found = groups_.find(pid);
  if (found == groups_.end()) return;
  witness_.Close(found->second.handle);
  groups_.erase(found);
}

}  // namespace exitwatch
