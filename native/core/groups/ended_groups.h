#ifndef EXITWATCH_CORE_GROUPS_ENDED_GROUPS_H_
#define EXITWATCH_CORE_GROUPS_ENDED_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "core/groups/group_identity.h"

namespace exitwatch {

// The latest groups whose exit was reported. Another of their threads, or another source, may
// report them again.
class EndedGroups {
 public:
  explicit EndedGroups(size_t most) : most_(most) {}

  bool Contains(const GroupIdentity& identity) const;
  void Add(const GroupIdentity& identity);

 private:
  struct Ended {
    GroupIdentity identity;
    uint64_t number;  // the serial number of its Add()
  };

  const size_t most_;
  uint64_t added_ = 0;
  std::unordered_map<int32_t, Ended> groups_;  // by pid
  std::deque<std::pair<int32_t, uint64_t>> order_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_ENDED_GROUPS_H_
