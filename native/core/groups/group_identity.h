#ifndef EXITWATCH_CORE_GROUPS_GROUP_IDENTITY_H_
#define EXITWATCH_CORE_GROUPS_GROUP_IDENTITY_H_

#include <cstdint>

namespace exitwatch {

// Distinguishes a thread group from all others that had its pid. A field is 0 if unknown.
struct GroupIdentity {
  int32_t pid = 0;
  uint64_t start_ticks = 0;
  uint64_t inode = 0;     // of pidfs
  uint64_t group = 0;     // GroupRecord::group
  uint64_t start_ns = 0;  // on the host's CLOCK_BOOTTIME
};

// Compares only what both sides know.
inline bool IsSameGroup(const GroupIdentity& a, const GroupIdentity& b) {
  const auto agree = [](uint64_t x, uint64_t y) { return x == 0 || y == 0 || x == y; };
  return a.pid == b.pid && agree(a.start_ticks, b.start_ticks) && agree(a.inode, b.inode) &&
         agree(a.group, b.group) && agree(a.start_ns, b.start_ns);
}

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_GROUP_IDENTITY_H_
