#ifndef EXITWATCH_CORE_GROUPS_GROUP_INSPECTION_H_
#define EXITWATCH_CORE_GROUPS_GROUP_INSPECTION_H_

#include "core/groups/process_witness.h"
#include "core/groups/thread_group.h"

namespace exitwatch {

// What has become of a process whose first thread has ended.
enum class GroupState {
  kDead,            // every thread has ended; the pid may be another process's already
  kLeaderGone,      // others live
  kExeced,          // another thread has called exec, and is the first one now
  kExecedOrReused,  // or a new process was given the pid within the same clock tick
  kUnknown,         // could not be asked; to be tried again
};

// Asks a witness about a group whose leader's exit event came, and notes in the group what it sees
// of it. With kLeaderGone the group has a handle.
GroupState InspectGroup(ProcessWitness& witness, ThreadGroup& group);

// Whether the process of a group that has nothing but exits of other threads is still there; and
// notes in it whether one of them has ended the process.
bool IsGroupAlive(ProcessWitness& witness, ThreadGroup& group);

// Notes in a group whose process has died what can be read of it through its handle: its status if
// the parent has reaped it, or if we may see it.
void ReadDeadGroup(ProcessWitness& witness, ThreadGroup& group, ProcessState state);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_GROUP_INSPECTION_H_
