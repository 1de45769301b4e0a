#ifndef EXITWATCH_CORE_GROUPS_GROUP_STAGES_H_
#define EXITWATCH_CORE_GROUPS_GROUP_STAGES_H_

#include <cstdint>

#include "core/groups/group_agenda.h"
#include "core/groups/group_identity.h"
#include "core/groups/process_witness.h"
#include "core/groups/stream_kind.h"
#include "core/groups/thread_group.h"

namespace exitwatch {

// Moves one thread group from stage to stage, from the first exit of a thread to its settled exit,
// driven by events and by what a witness finds. Puts the next steps on the agenda.
class GroupStages {
 public:
  // How long to wait before asking again, after a question failed (no descriptor was free).
  static constexpr uint64_t kRetryNs = 10'000'000;

  // `status_timeout_ns`: how long to wait until a process that was found dead is reaped, or until
  // its event comes, if only that has its status.
  GroupStages(ProcessWitness& witness, uint64_t status_timeout_ns, GroupAgenda& agenda);

  // Sets the source that reports exits besides handles.
  void SetStream(StreamKind stream);

  // The first thread's exit event came.
  enum class Exited { kOn, kEnded };  // kEnded: nothing more will come
  Exited OnLeaderExit(ThreadGroup& group, const ProcEvent& event);

  // The handle may be ready. `alive_since_ns`: when it was last known not to be.
  void OnHandleReady(ThreadGroup& group, uint64_t alive_since_ns);

  // Gives the group a handle of its process, which may be alive.
  void TakeOver(ThreadGroup& group, const GroupIdentity& identity, ProcessWitness::Handle handle,
                uint64_t alive_ns, ThreadGroup::Cause cause);
  void Hold(ThreadGroup& group);

  // The same, once its death is known: the handle may have the status.
  void AddHandle(ThreadGroup& group, ProcessWitness::Handle handle);

  // The process is gone, and no event reported it.
  void Presume(ThreadGroup& group, const GroupIdentity& identity, uint64_t alive_ns,
               ThreadGroup::Cause cause);

  // The process is gone, and a record reported its code before its debugger released it.
  void EndPtraced(ThreadGroup& group, const ProcEvent& event);

  // The group is dead. Only its status may still change.
  void MarkDead(ThreadGroup& group, uint64_t now_ns);

  // Checks whether a group without a leader has exited. False: there is nothing to wait for,
  // because another thread called exec.
  bool Confirm(ThreadGroup& group);

  // Checks whether a group that has shown only exits of other threads is alive. False: there is
  // nothing to remember.
  bool Validate(ThreadGroup& group);

  // ExpectOthers(): the first thread had already exited when the process was found; notes what the
  // stream will still report about the other threads. ExpectNothing(): it will report nothing,
  // because something was lost or there is no stream.
  void ExpectOthers(ThreadGroup& group);
  static void ExpectNothing(ThreadGroup& group);

  // When a group has waited long enough in its stage.
  uint64_t Deadline(const ThreadGroup& group) const;

  // Whether only an event that may be on its way has the status of a dead process.
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
