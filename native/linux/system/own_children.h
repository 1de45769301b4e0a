#ifndef EXITWATCH_LINUX_SYSTEM_OWN_CHILDREN_H_
#define EXITWATCH_LINUX_SYSTEM_OWN_CHILDREN_H_

#include <cstdint>

#include "core/groups/group_identity.h"

namespace exitwatch {

// The children that exitwatch runs for a moment to try what the kernel tells: no reader of this
// process, in whichever Worker, tells of them. From any thread; times are on the host's
// CLOCK_MONOTONIC.
class OwnChildren {
 public:
  // One that lives.
  static void Add(const GroupIdentity& identity);

  // To be called when it was reaped.
  static void End(int32_t pid, uint64_t now_ns);

  // Whether this is one of them; where only its pid is known, by when it ended.
  static bool Contains(const GroupIdentity& identity, uint64_t time_ns);
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_OWN_CHILDREN_H_
