#ifndef EXITWATCH_CORE_GROUPS_GROUP_STAGES_H_
#define EXITWATCH_CORE_GROUPS_GROUP_STAGES_H_

#include <cstdint>

#include "core/groups/group_agenda.h"
#include "core/groups/group_identity.h"
#include "core/groups/process_witness.h"
#include "core/groups/stream_kind.h"
#include "core/groups/thread_group.h"

namespace exitwatch {

// How one thread group passes from stage to stage, from the first exit of a thread to its settled
// end: by what its events say, and by what a witness finds. What is to be done next it puts on the
// agenda.
class GroupStages {
 public:
  // What could not be asked (no descriptor left) is asked again after this time.
  static constexpr uint64_t kRetryNs = 10'000'000;

  // `status_timeout_ns`: how long a process that was found dead may take to be reaped, or its event
  // to come, where only that tells its status.
  GroupStages(ProcessWitness& witness, uint64_t status_timeout_ns, GroupAgenda& agenda);

  // What reports ends beside handles.
  void SetStream(StreamKind stream);

  // The first thread's exit event came.
  enum class Exited { kOn, kEnded };  // kEnded: nothing more is to come
  Exited OnLeaderExit(ThreadGroup& group, const ProcEvent& event);

  // Its handle may have something to tell. `alive_since_ns`: when it was certain not to be ready.
  void OnHandleReady(ThreadGroup& group, uint64_t alive_since_ns);

  // It gets a handle of its process, which may live.
  void TakeOver(ThreadGroup& group, const GroupIdentity& identity, ProcessWitness::Handle handle,
                uint64_t alive_ns, ThreadGroup::Cause cause);
  void Hold(ThreadGroup& group);

  // The same once its death is known already: the handle may tell the status.
  void AddHandle(ThreadGroup& group, ProcessWitness::Handle handle);

  // Its process is gone, and no event said so.
  void Presume(ThreadGroup& group, const GroupIdentity& identity, uint64_t alive_ns,
               ThreadGroup::Cause cause);

  // Its process is gone, and a record told what it ended with before its tracer let go of it.
  void EndTraced(ThreadGroup& group, const ProcEvent& event);

  // Dead. From here on only the status may still change.
  void MarkDead(ThreadGroup& group, uint64_t now_ns);

  // Asks whether a group whose leader is gone has ended. False: there is nothing to wait for, since
  // another thread has called exec.
  bool Confirm(ThreadGroup& group);

  // Asks whether a group lives that has shown nothing but exits of other threads. False: there is
  // nothing to remember.
  bool Validate(ThreadGroup& group);

  // A process whose first thread had left when it was found: what the stream has yet to tell of the
  // others; and nothing of it will come, since something was lost, or there is no stream.
  void ExpectOthers(ThreadGroup& group);
  static void ExpectNothing(ThreadGroup& group);

  // When a group has waited enough in its stage.
  uint64_t Deadline(const ThreadGroup& group) const;

  // Whether nothing but an event that may be on its way tells the status of a dead process.
  bool MayLackCode(const ThreadGroup& group) const;

 private:
  ProcessWitness& witness_;
  const uint64_t status_timeout_ns_;
  GroupAgenda& agenda_;
  StreamKind stream_ = StreamKind::kThreads;
  uint64_t late_event_ns_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_GROUP_STAGES_H_
