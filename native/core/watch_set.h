#ifndef EXITWATCH_CORE_WATCH_SET_H_
#define EXITWATCH_CORE_WATCH_SET_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/process_entry.h"

namespace exitwatch {

struct Watch {
  int32_t pid = 0;
  ProcessEntry process;
  uint64_t since_ns = 0;
};

// The processes that somebody watches, shared by JavaScript's thread and the reader's. One pid may
// have several: the end of a process may not have been told yet when its pid is another's already.
class WatchSet {
 public:
  void Add(const Watch& watch);
  bool Contains(int32_t pid);
  void Remove(int32_t pid, uint64_t start_ticks, uint64_t inode);
  std::vector<Watch> List();

  // Removes the watch of the process that ended then: with this inode, where that is known (not 0),
  // otherwise the first one; but none that was made when the process had ended already.
  std::optional<Watch> Take(int32_t pid, uint64_t inode, uint64_t end_ns);

  // The inode of the watched process that had this pid at this time; 0 where that is not known.
  uint64_t InodeAt(int32_t pid, uint64_t time_ns);

 private:
  std::mutex mutex_;
  std::unordered_multimap<int32_t, Watch> watches_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_WATCH_SET_H_
