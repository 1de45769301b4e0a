#ifndef EXITWATCH_CORE_GROUPS_GROUP_AGENDA_H_
#define EXITWATCH_CORE_GROUPS_GROUP_AGENDA_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/groups/thread_group.h"

namespace exitwatch {

// Which groups to look at again, and why. An entry is void if, when its turn comes, the group is
// gone or in another stage.
class GroupAgenda {
 public:
  // Confirm whether the group has exited: stage kLeaderGone.
  void Confirm(const ThreadGroup& group) { unconfirmed_.push_back(group.pid); }

  // Check whether the group is alive: stage kCollecting or kHeld.
  void Validate(ThreadGroup& group) {
    if (!std::exchange(group.agenda.is_unvalidated, true)) unvalidated_.push_back(group.pid);
  }

  // Look at the group now and then, because the kernel cannot wake us: stage kHeld.
  void Poll(const ThreadGroup& group) { polled_.push_back(group.pid); }

  // The group is dead: settle its exit.
  void Settle(const ThreadGroup& group) { dead_.push_back(group.pid); }

  // Only a late event matters to the group until this time. Many groups may wait here for long, so
  // they are not visited before.
  void Await(ThreadGroup& group, uint64_t until_ns) {
    group.agenda.is_awaited = true;
    awaited_.push_back({until_ns, group.pid});
  }

  // Something new is known about a group that awaited an event, or it has waited long enough.
  void StopAwaiting(ThreadGroup& group) {
    if (std::exchange(group.agenda.is_awaited, false)) dead_.push_back(group.pid);
  }

  // The process is gone: forget the group, which is in stage kCollecting.
  void Expire(ThreadGroup& group) {
    group.agenda.orphan = true;
    orphans_.push_back(group.pid);
  }

  // Each calls `visit(pid)` for the entries of its list, and keeps those for which it returns true.
  // Entries that `visit` adds are visited next time.
  template <typename Visit>
  void VisitUnconfirmed(Visit visit) {
    Retain(unconfirmed_, visit);
  }
  template <typename Visit>
  void VisitUnvalidated(Visit visit) {
    Retain(unvalidated_, visit);
  }
  template <typename Visit>
  void VisitPolled(Visit visit) {
    Retain(polled_, visit);
  }
  template <typename Visit>
  void VisitDead(Visit visit) {
    Retain(dead_, visit);
  }
  template <typename Visit>
  void VisitOrphans(Visit visit) {
    Retain(orphans_, visit);
  }

  // Removes the groups that have waited long enough at this time.
  template <typename Visit>
  void TakeAwaited(uint64_t now_ns, Visit visit) {
    while (!awaited_.empty() && awaited_.front().until_ns <= now_ns) {
      const int32_t pid = awaited_.front().pid;
      awaited_.pop_front();
      visit(pid);
    }
  }

  // When something is due, given `deadline(pid)` of each group: 0 at once, UINT64_MAX never.
  template <typename Deadline>
  uint64_t NextDeadline(Deadline deadline) const {
    if (!unvalidated_.empty()) return 0;
    uint64_t next_ns = awaited_.empty() ? UINT64_MAX : awaited_.front().until_ns;
    for (const auto* pids : {&polled_, &unconfirmed_, &dead_, &orphans_}) {
      for (const int32_t pid : *pids) next_ns = std::min<uint64_t>(next_ns, deadline(pid));
    }
    return next_ns;
  }

  // Whether `is(pid)` is true of any dead group.
  template <typename Is>
  bool AnyDead(Is is) const {
    for (const int32_t pid : dead_) {
      if (is(pid)) return true;
    }
    for (const Awaited& awaited : awaited_) {
      if (is(awaited.pid)) return true;
    }
    return false;
  }

 private:
  struct Awaited {
    uint64_t until_ns;
    int32_t pid;
  };

  template <typename Visit>
  static void Retain(std::vector<int32_t>& pids, Visit visit) {
    std::vector<int32_t> due = std::exchange(pids, {});
    size_t kept = 0;
    for (const int32_t pid : due) {
      if (visit(pid)) due[kept++] = pid;
    }
    due.resize(kept);
    due.insert(due.end(), pids.begin(), pids.end());
    pids = std::move(due);
  }

  std::vector<int32_t> unconfirmed_;
  std::vector<int32_t> unvalidated_;
  std::vector<int32_t> polled_;
  std::vector<int32_t> dead_;
  std::deque<Awaited> awaited_;  // ordered by time
  std::vector<int32_t> orphans_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_GROUP_AGENDA_H_
