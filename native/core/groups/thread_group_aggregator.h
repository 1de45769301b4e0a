#ifndef EXITWATCH_CORE_GROUPS_THREAD_GROUP_AGGREGATOR_H_
#define EXITWATCH_CORE_GROUPS_THREAD_GROUP_AGGREGATOR_H_

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "core/groups/event_owner.h"
#include "core/groups/group_agenda.h"
#include "core/groups/group_identity.h"
#include "core/groups/group_stages.h"
#include "core/groups/process_witness.h"
#include "core/groups/stream_kind.h"
#include "core/groups/thread_group.h"
#include "core/parse/proc_event.h"

namespace exitwatch {

// Turns exits of threads into one exit per process, with the status that the parent's waitpid
// returns and the time at which the last thread was gone.
//
// Events alone are not enough: a first thread may exit long before its process, with another code,
// or be replaced by a thread that calls exec. So the first thread's exit is only a hint, which a
// ProcessWitness confirms. Until the stream has been read beyond the confirmation, late events of
// the same group may still change the status.
class ThreadGroupAggregator {
 public:
  using OnEnd = std::function<void(const ThreadGroup&)>;

  // `status_timeout_ns`: see GroupStages.
  ThreadGroupAggregator(ProcessWitness& witness, uint64_t status_timeout_ns, OnEnd on_end);
  ~ThreadGroupAggregator();
  ThreadGroupAggregator(const ThreadGroupAggregator&) = delete;
  ThreadGroupAggregator& operator=(const ThreadGroupAggregator&) = delete;

  // Forgets everything and closes the handles.
  void Close();

  // `owner`: whose first thread has exited, for such an event.
  void OnExit(const ProcEvent& event, const EventOwner& owner = {});
  // If the stream reports forks: a new process proves that the pid's former owner is dead.
  void OnFork(const ProcEvent& event);
  void OnExec(const ProcEvent& event);
  void OnCoredump(const ProcEvent& event);

  // A held handle woke the reader. `alive_since_ns`: when it was last known not to be ready.
  void OnHandleReady(int32_t pid, uint64_t alive_since_ns);

  // Takes over a handle of a process whose first thread has already exited, or that may be dead:
  // its leader's exit event was never seen. `alive_ns`: when the process was last known to be
  // alive.
  void Adopt(const GroupIdentity& identity, ProcessWitness::Handle handle, uint64_t alive_ns,
             ThreadGroup::Cause cause);

  // The same for a process that is dead, with a handle that was held before.
  void AdoptDead(const GroupIdentity& identity, ProcessWitness::Handle handle, uint64_t alive_ns,
                 ThreadGroup::Cause cause, ThreadGroup::Outstanding outstanding);

  // Sets the source that reports exits besides handles. It may still report processes that are
  // already dead.
  void SetStream(StreamKind stream);

  // Whether exits of unwatched processes are reported too. If so, a late event must not be taken
  // for another process's.
  void ReportsAll(bool reports_all) { reports_all_ = reports_all; }

  // A process is gone without an event. Reports what is known, unless events that are yet to be
  // read say more. `alive_ns`: as above.
  void Presume(const GroupIdentity& identity, uint64_t alive_ns,
               ThreadGroup::Cause cause = ThreadGroup::Cause::kLost);

  // A thread has exited, but the group cannot be dead until its debugger releases the thread, which
  // only a handle reports. With `has_group_code`, `event` has the group's code instead of the
  // thread's. False if the process could not be inspected.
  bool OnPtracedExit(const ProcEvent& event, bool has_group_code);

  // Another source has reported the exit of this process.
  void Supersede(const GroupIdentity& identity);

  // Confirms what came in, and reports what is settled. `stream_ns`: all events with an older
  // timestamp have been read.
  void Settle(uint64_t stream_ns);

  // When Settle() is due even if no event comes: 0 at once, UINT64_MAX never.
  uint64_t NextDeadline() const;

  // Whether there are groups to deal with, perhaps through their handles.
  bool HasGroups() const { return !groups_.empty(); }

  // Whether exits that events have announced are yet to be reported.
  bool HasUnreported() const;

  // Whether a group is dead, but waits for its record: see ThreadGroup::NeedsRecord().
  bool AwaitsRecord() const;

  // Whether the exit of this process is yet to be reported.
  bool IsEnding(int32_t pid) const;

  // Whether the exit of another process that has, or had, this pid is yet to be reported.
  bool IsEndingOther(const GroupIdentity& identity) const;

  // Whether the exit event of this very process has come, and its exit is yet to be reported.
  bool HasExitEvent(const GroupIdentity& identity) const;

  // Events or records were lost: forgets the groups that wait for another event. Groups with a
  // handle stay, and stop waiting for anything else.
  void ForgetUnconfirmed();

  // The process is no longer of interest.
  void Forget(int32_t pid);

 private:
  ThreadGroup* Find(int32_t pid);
  const ThreadGroup* Find(int32_t pid) const;
  ThreadGroup& Group(int32_t pid) { return groups_.try_emplace(pid, pid).first->second; }
  bool IsReportedBefore(const ProcEvent& event);
  void OnLeaderExit(const ProcEvent& event, EventOwner owner);
  bool IsExecOfOther(const ProcEvent& event, ThreadGroup& group);
  bool IsPast(const ProcEvent& event, const ThreadGroup& other);
  void EndByEvent(const ProcEvent& event, const EventOwner& owner);
  bool KeepsWaiting(int32_t pid, uint64_t stream_ns);
  void EndAtOnce(const GroupIdentity& identity, ProcessWitness::Handle handle, uint64_t alive_ns,
                 ThreadGroup::Cause cause);
  void End(ThreadGroup& group);
  void Erase(int32_t pid);

  ProcessWitness& witness_;
  OnEnd on_end_;
  bool reports_all_ = true;
  GroupAgenda agenda_;
  GroupStages stages_;
  std::unordered_map<int32_t, ThreadGroup> groups_;
  // When processes were reported before their exit event came, by pid.
  std::unordered_map<int32_t, uint64_t> ended_early_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_THREAD_GROUP_AGGREGATOR_H_
