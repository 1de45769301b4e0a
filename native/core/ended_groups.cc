#include "core/ended_groups.h"

namespace exitwatch {

bool EndedGroups::Contains(const GroupIdentity& identity) const {
  const auto found = groups_.find(identity.pid);
  return found != groups_.end() && IsSameGroup(found->second, identity);
}

void EndedGroups::Add(const GroupIdentity& identity) {
  if (groups_.insert_or_assign(identity.pid, identity).second) order_.push_back(identity.pid);
  while (order_.size() > most_) {
    groups_.erase(order_.front());
    order_.pop_front();
  }
}

}  // namespace exitwatch
