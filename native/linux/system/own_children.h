#ifndef EXITWATCH_LINUX_SYSTEM_OWN_CHILDREN_H_
#define EXITWATCH_LINUX_SYSTEM_OWN_CHILDREN_H_

#include <cstdint>

#include "core/groups/group_identity.h"

namespace exitwatch {

// The short-lived children with which exitwatch tests what the kernel reports. No reader of this
// process, in any Worker, reports their exits. For any thread; times are on the host's
// CLOCK_MONOTONIC.
class OwnChildren {
 public:
  // The child must be alive.
  static void Add(const GroupIdentity& identity);

  // Call this once the child was reaped.
  static void End(int32_t pid, uint64_t now_ns);

  // Whether this is one of them. If only its pid is known, the time of its exit decides.
  static bool Contains(const GroupIdentity& identity, uint64_t time_ns);
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_OWN_CHILDREN_H_
