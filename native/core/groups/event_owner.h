#ifndef EXITWATCH_CORE_GROUPS_EVENT_OWNER_H_
#define EXITWATCH_CORE_GROUPS_EVENT_OWNER_H_

#include "core/groups/group_identity.h"

namespace exitwatch {

// Which of the processes that had its pid an exit event belongs to. The kernel makes the event
// after it has told the parent (do_exit(), kernel/exit.c). If the thread loses its CPU in between,
// later processes may have the pid, and end, before the event comes.
struct EventOwner {
  enum class Certainty {
    kUnknown,     // nothing is known about processes that had the pid
    kKnown,       // `process`
    kContested,   // `process` or another one: the event does not tell how this one ended
    kUnobserved,  // none that is watched, or was found at the start
  };

  Certainty certainty = Certainty::kUnknown;
  GroupIdentity process;
  GroupIdentity later;  // a process that got the pid later: not its owner; pid 0 if none is known
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_EVENT_OWNER_H_
