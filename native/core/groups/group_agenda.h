#ifndef EXITWATCH_CORE_GROUPS_GROUP_AGENDA_H_
#define EXITWATCH_CORE_GROUPS_GROUP_AGENDA_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/groups/thread_group.h"

namespace exitwatch {

// Which groups are to be looked at again, and for what. A group that is found in another stage, or
// not at all, when its turn comes has nothing to do there any more.
class GroupAgenda {
 public:
  // Whether the group has ended is to be confirmed: stage kLeaderGone.
  void Confirm(const ThreadGroup& group) { unconfirmed_.push_back(group.pid); }

  // Whether it lives is to be asked: stage kCollecting or kHeld.
  void Validate(ThreadGroup& group) {
    if (!std::exchange(group.agenda.is_unvalidated, true)) unvalidated_.push_back(group.pid);
  }

  // It is to be looked at now and then, since the kernel cannot wake us: stage kHeld.
  void Poll(const ThreadGroup& group) { polled_.push_back(group.pid); }

  // It is dead: its end is to be settled.
  void Settle(const ThreadGroup& group) { dead_.push_back(group.pid); }

  // Nothing but a late event is of interest until this time. There may be many of them, for long.
  void Await(ThreadGroup& group, uint64_t until_ns) {
    group.agenda.is_awaited = true;
    awaited_.push_back({until_ns, group.pid});
  }

  // Something new is known of a group that waited for an event; or it has waited enough.
  void StopAwaiting(ThreadGroup& group) {
    if (std::exchange(group.agenda.is_awaited, false)) dead_.push_back(group.pid);
  }

  // Its process is gone, and it is to be forgotten: stage kCollecting.
  void Expire(ThreadGroup& group) {
    group.agenda.orphan = true;
    orphans_.push_back(group.pid);
  }

  // Each calls `visit(pid)` for what is on its list; what that adds comes the next time. Those for
  // which it returns true stay.
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

  // Takes those that have waited enough at this time.
  template <typename Visit>
  void TakeAwaited(uint64_t now_ns, Visit visit) {
    while (!awaited_.empty() && awaited_.front().until_ns <= now_ns) {
      const int32_t pid = awaited_.front().pid;
      awaited_.pop_front();
      visit(pid);
    }
  }

  // When there is something to do; `deadline(pid)` tells when for one group. 0 at once, UINT64_MAX
  // never.
  template <typename Deadline>
  uint64_t NextDeadline(Deadline deadline) const {
    if (!unvalidated_.empty()) return 0;
    uint64_t next_ns = awaited_.empty() ? UINT64_MAX : awaited_.front().until_ns;
    for (const auto* pids : {&polled_, &unconfirmed_, &dead_, &orphans_}) {
      for (const int32_t pid : *pids) next_ns = std::min<uint64_t>(next_ns, deadline(pid));
    }
    return next_ns;
  }

  // Whether this is true of one that is dead.
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
  std::deque<Awaited> awaited_;  // in their order
  std::vector<int32_t> orphans_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_GROUP_AGENDA_H_
