#ifndef EXITWATCH_CORE_GROUPS_GROUP_INSPECTION_H_
#define EXITWATCH_CORE_GROUPS_GROUP_INSPECTION_H_

#include <optional>

#include "core/groups/group_identity.h"
#include "core/groups/process_witness.h"
#include "core/groups/thread_group.h"

namespace exitwatch {

// The state of a process whose first thread has exited.
enum class GroupState {
  kDead,            // every thread has exited; another process may already have the pid
  kLeaderGone,      // other threads are alive
  kExeced,          // another thread called exec and is now the first one
  kExecedOrReused,  // the same, or a new process got the pid within the same clock tick
  kUnknown,         // could not be determined; try again
};

// The process that has this pid now: pid 0 if there is none. Nothing if that cannot be determined.
std::optional<GroupIdentity> HolderOf(ProcessWitness& witness, int32_t pid);

// Asks the witness about a group whose leader's exit event came, and notes the answers in the
// group. After kLeaderGone the group has a handle.
GroupState InspectGroup(ProcessWitness& witness, ThreadGroup& group);

// Whether the process is still alive, for a group that has shown only exits of other threads. Notes
// in the group whether one of them ended the process.
bool IsGroupAlive(ProcessWitness& witness, ThreadGroup& group);

// Notes in a group whose process has died what its handle gives access to: its status, if the
// parent has reaped it or if we may see it.
void ReadDeadGroup(ProcessWitness& witness, ThreadGroup& group, ProcessState state);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_GROUP_INSPECTION_H_
