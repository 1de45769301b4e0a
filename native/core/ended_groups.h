#ifndef EXITWATCH_CORE_ENDED_GROUPS_H_
#define EXITWATCH_CORE_ENDED_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "core/group_identity.h"

namespace exitwatch {

// Groups whose end was told, and may be told again: by another of its threads, or by another
// witness. Remembers the latest ones.
class EndedGroups {
 public:
  explicit EndedGroups(size_t most) : most_(most) {}

  bool Contains(const GroupIdentity& identity) const;
  void Add(const GroupIdentity& identity);

 private:
  const size_t most_;
  std::unordered_map<int32_t, GroupIdentity> groups_;
  std::deque<int32_t> order_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_ENDED_GROUPS_H_
