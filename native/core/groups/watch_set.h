#ifndef EXITWATCH_CORE_GROUPS_WATCH_SET_H_
#define EXITWATCH_CORE_GROUPS_WATCH_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/groups/group_identity.h"
#include "core/groups/process_entry.h"

namespace exitwatch {

struct Watch {
  int32_t pid = 0;
  ProcessEntry process;
  uint64_t since_ns = 0;
  uint64_t armed_ns = 0;  // from here on BPF programs tell of it, once they are at work
  int pidfd = -1;         // the pidfd that tells its end, too; -1: the stream alone does

  GroupIdentity Identity() const { return process.Identity(pid); }
};

// The processes that somebody watches, shared by JavaScript's thread and the reader's. One pid may
// have several: the end of a process may not have been told yet when its pid is another's already.
class WatchSet {
 public:
  // Calls `on_change` for every pid that is watched, and from now on, before anything else is done
  // with the set, for each that is watched for the first time, or no more.
  using OnChange = std::function<void(int32_t pid, bool is_watched)>;
  void Follow(OnChange on_change);

  // `now` gives the time for `armed_ns`.
  void Add(const Watch& watch, const std::function<uint64_t()>& now);
  bool Contains(int32_t pid);
  // Gives what it removes; nothing where there is no such watch.
  std::optional<Watch> Remove(int32_t pid, uint64_t start_ticks, uint64_t inode);
  std::vector<Watch> List();

  // Removes the watch of the process that ended then: by its inode, where that is known, otherwise
  // the first one that may be its; but none that was made when the process had ended already.
  std::optional<Watch> Take(const GroupIdentity& identity, uint64_t end_ns);

  // How many have a pidfd, and how many the stream alone reports; from any thread.
  size_t with_pidfd() const { return with_pidfd_.load(std::memory_order_relaxed); }
  size_t without_pidfd() const { return without_pidfd_.load(std::memory_order_relaxed); }

  // The inode of the watched process that had this pid at this time; 0 where that is not known.
  uint64_t InodeAt(int32_t pid, uint64_t time_ns);

 private:
  using Watches = std::unordered_multimap<int32_t, Watch>;
  std::atomic<size_t>& CountOf(const Watch& watch) {
    return watch.pidfd < 0 ? without_pidfd_ : with_pidfd_;
  }
  void Erase(Watches::iterator watch);

  std::mutex mutex_;
  Watches watches_;
  OnChange on_change_;
  std::atomic<size_t> with_pidfd_{0};
  std::atomic<size_t> without_pidfd_{0};
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_WATCH_SET_H_
