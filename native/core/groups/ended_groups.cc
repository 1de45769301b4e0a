#include "core/groups/ended_groups.h"

namespace exitwatch {

bool EndedGroups::Contains(const GroupIdentity& identity) const {
  const auto found = groups_.find(identity.pid);
  return found != groups_.end() && IsSameGroup(found->second.identity, identity);
}

void EndedGroups::Add(const GroupIdentity& identity) {
  added_++;
  groups_.insert_or_assign(identity.pid, Ended{identity, added_});
  order_.push_back({identity.pid, added_});
  while (order_.size() > most_) {
    const auto [pid, number] = order_.front();
    order_.pop_front();
    const auto oldest = groups_.find(pid);
    if (oldest != groups_.end() && oldest->second.number == number) groups_.erase(oldest);
  }
}

}  // namespace exitwatch
