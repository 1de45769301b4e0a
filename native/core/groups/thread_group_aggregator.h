#ifndef EXITWATCH_CORE_GROUPS_THREAD_GROUP_AGGREGATOR_H_
#define EXITWATCH_CORE_GROUPS_THREAD_GROUP_AGGREGATOR_H_

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "core/groups/group_agenda.h"
#include "core/groups/group_identity.h"
#include "core/groups/group_stages.h"
#include "core/groups/process_witness.h"
#include "core/groups/stream_kind.h"
#include "core/groups/thread_group.h"
#include "core/parse/proc_event.h"

namespace exitwatch {

// Turns the exits of threads into one end per process, with the status that the parent's waitpid
// returns and the time at which the last thread was gone.
//
// The events alone cannot tell: a first thread may end long before its process, with another code,
// or be replaced by a thread that calls exec. So a first thread's exit is only a hint, confirmed by
// a ProcessWitness; until the stream has been read beyond the confirmation, late events of the same
// group may still add to the status.
class ThreadGroupAggregator {
 public:
  using OnEnd = std::function<void(const ThreadGroup&)>;

  // The pidfs inode of the process that had this pid at this time; 0 where nobody knows.
  using ExpectedInode = std::function<uint64_t(int32_t pid, uint64_t time_ns)>;

  // `status_timeout_ns`: see GroupStages.
  ThreadGroupAggregator(ProcessWitness& witness, uint64_t status_timeout_ns, OnEnd on_end,
                        ExpectedInode expected_inode = {});
  ~ThreadGroupAggregator();
  ThreadGroupAggregator(const ThreadGroupAggregator&) = delete;
  ThreadGroupAggregator& operator=(const ThreadGroupAggregator&) = delete;

  // Forgets everything, and closes the handles.
  void Close();

  void OnExit(const ProcEvent& event);
  // If forks are reported: a new process proves that the one that had its pid before is dead.
  void OnFork(const ProcEvent& event);
  void OnExec(const ProcEvent& event);
  void OnCoredump(const ProcEvent& event);

  // A held handle woke the reader. `alive_since_ns`: when it was certain not to be ready.
  void OnHandleReady(int32_t pid, uint64_t alive_since_ns);

  // Takes over a handle of a process whose first thread has ended already, or that may be dead: its
  // leader's exit event was never seen. `alive_ns`: when the process was last known to live.
  void Adopt(const GroupIdentity& identity, ProcessWitness::Handle handle, uint64_t alive_ns,
             ThreadGroup::Cause cause);

  // The same with a handle that is held already, of a process that is dead.
  void AdoptDead(const GroupIdentity& identity, ProcessWitness::Handle handle, uint64_t alive_ns,
                 ThreadGroup::Cause cause, ThreadGroup::Outstanding outstanding);

  // What reports ends beside handles, and may yet do so for some that are dead.
  void SetStream(StreamKind stream);

  // Whether the ends of processes that nobody watches are reported, too: then an event that comes
  // late must not be told as another process's.
  void ReportsAll(bool reports_all) { reports_all_ = reports_all; }

  // A process is gone, and no event said so: its end is reported with what is known, unless events
  // that are still to be read say more. `alive_ns` as above.
  void Presume(const GroupIdentity& identity, uint64_t alive_ns,
               ThreadGroup::Cause cause = ThreadGroup::Cause::kLost);

  // A thread has ended, and the group cannot be dead before its tracer has let go of it: nobody
  // tells that but a handle. `event` has the group's code, where that is known, instead of the
  // thread's. False where the process could not be looked at.
  bool OnTracedExit(const ProcEvent& event, bool has_group_code);

  // The process's end was told by others.
  void Supersede(const GroupIdentity& identity);

  // Confirms what came in, and ends what is settled. `stream_ns`: all events with an older
  // timestamp have been read.
  void Settle(uint64_t stream_ns);

  // When Settle() has something to do again even if no event comes: 0 at once, UINT64_MAX never.
  uint64_t NextDeadline() const;

  // Whether it has groups to deal with, perhaps by their handles.
  bool HasGroups() const { return !groups_.empty(); }

  // Whether ends that events told are on their way.
  bool HasUnreported() const;

  // Whether an end of this process is on its way.
  bool IsEnding(int32_t pid) const;

  // Whether an end of another process that has, or had, its pid is on its way.
  bool IsEndingOther(const GroupIdentity& identity) const;

  // Events or records were lost: forgets what waits for another event. What a handle watches stays,
  // and waits for nothing else.
  void ForgetUnconfirmed();

  // Nobody wants to know about this process any more.
  void Forget(int32_t pid);

 private:
  ThreadGroup* Find(int32_t pid);
  const ThreadGroup* Find(int32_t pid) const;
  ThreadGroup& Group(int32_t pid) { return groups_.try_emplace(pid, pid).first->second; }
  bool IsReportedBefore(const ProcEvent& event);
  bool KeepsWaiting(int32_t pid, uint64_t stream_ns);
  void EndAtOnce(const GroupIdentity& identity, ProcessWitness::Handle handle, uint64_t alive_ns,
                 ThreadGroup::Cause cause);
  void End(ThreadGroup& group);
  void Erase(int32_t pid);

  ProcessWitness& witness_;
  OnEnd on_end_;
  ExpectedInode expected_inode_;
  bool reports_all_ = true;
  GroupAgenda agenda_;
  GroupStages stages_;
  std::unordered_map<int32_t, ThreadGroup> groups_;
  std::unordered_map<int32_t, uint64_t> ended_early_;  // pids whose exit event is yet to come; when
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_THREAD_GROUP_AGGREGATOR_H_
