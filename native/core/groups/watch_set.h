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
  uint64_t armed_ns = 0;  // BPF programs, once they run, report it from here on
  int pidfd = -1;         // a pidfd that reports its exit too; -1: only the stream does
  // An exit event came that may have been its own or another process's.
  bool is_contested = false;
  bool was_whole = false;  // all its threads were seen alive after `since_ns`

  GroupIdentity Identity() const { return process.Identity(pid); }
};

// The watched processes, shared by JavaScript's thread and the reader's. One pid may have several
// watches: it may belong to a new process before the old one's exit has been reported.
class WatchSet {
 public:
  // Calls `on_change` for every watched pid, and from then on whenever a pid gets its first watch
  // or loses its last one, before any other use of the set.
  using OnChange = std::function<void(int32_t pid, bool is_watched)>;
  void Follow(OnChange on_change);

  // `now` returns the time for `armed_ns`.
  void Add(const Watch& watch, const std::function<uint64_t()>& now);
  bool Contains(int32_t pid);
  // Returns the removed watch; nothing if there is none.
  std::optional<Watch> Remove(int32_t pid, uint64_t start_ticks, uint64_t inode);
  std::vector<Watch> List();

  // Removes and returns the watch of the process that exited at `end_ns`: by inode, if known;
  // otherwise the newest possible one that was not made after the exit.
  std::optional<Watch> Take(const GroupIdentity& identity, uint64_t end_ns);

  // How many watches have a pidfd, and how many depend on the stream alone. For any thread.
  size_t with_pidfd() const { return with_pidfd_.load(std::memory_order_relaxed); }
  size_t without_pidfd() const { return without_pidfd_.load(std::memory_order_relaxed); }

  // The watches of this pid, oldest first.
  std::vector<Watch> ListOf(int32_t pid);

  // Sets `is_contested` or `was_whole` of this watch.
  void Contest(const GroupIdentity& identity);
  void NoteWhole(const GroupIdentity& identity);

 private:
  using Watches = std::unordered_multimap<int32_t, Watch>;
  std::atomic<size_t>& CountOf(const Watch& watch) {
    return watch.pidfd < 0 ? without_pidfd_ : with_pidfd_;
  }
  void Erase(Watches::iterator watch);
  Watch* Find(const GroupIdentity& identity);

  std::mutex mutex_;
  Watches watches_;
  OnChange on_change_;
  std::atomic<size_t> with_pidfd_{0};
  std::atomic<size_t> without_pidfd_{0};
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_WATCH_SET_H_
