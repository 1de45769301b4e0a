#ifndef EXITWATCH_LINUX_WATCHED_PROCESSES_H_
#define EXITWATCH_LINUX_WATCHED_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "core/thread_group_aggregator.h"
#include "core/watch_set.h"
#include "linux/kernel_clock.h"
#include "linux/system_error.h"
#include "linux/unique_fd.h"

namespace exitwatch {

// The processes that somebody watches. Add() and Remove() are for one thread, the owner's; the rest
// is the reader's.
class WatchedProcesses {
 public:
  enum class Result { kArmed, kGone, kFailed };

  // `wake` makes the reader call Check().
  explicit WatchedProcesses(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Watches the process with this pid, start and inode; kGone where there is no such process now.
  Result Add(int32_t pid, uint64_t start_ticks, uint64_t inode, SystemError* error);
  void Remove(int32_t pid, uint64_t start_ticks, uint64_t inode);

  WatchSet& set() { return set_; }

  // From now on the stream tells the end of whoever lives. Check() has to follow.
  void Arm();

  // Looks at watches that the stream may not tell: made before it was armed, or of processes that
  // were dying; and drops what was removed. `all_told`: the stream tells the ends of others, too.
  void Check(ProcessWitness& witness, ThreadGroupAggregator& aggregator, bool all_told);

  struct Ended {
    int32_t count = 0;
    bool is_complete = true;  // otherwise some could not be looked at, and have to be again
  };

  // Looks at all watches, because events were lost; `told_ns`: all exits before were seen.
  Ended CheckAll(ProcessWitness& witness, ThreadGroupAggregator& aggregator, uint64_t told_ns);

  // Closes what waits for a check.
  void Clear();

 private:
  struct Doubt {
    int32_t pid;
    uint64_t start_ticks;
    uint64_t inode;
    UniqueFd pidfd;
    uint64_t alive_ns;
    bool was_armed;
  };

  const std::function<void()> wake_;
  WatchSet set_;
  KernelClock owner_clock_;
  std::mutex mutex_;
  std::vector<Doubt> doubts_;     // guarded by mutex_
  std::vector<int32_t> removed_;  // guarded by mutex_
  bool armed_ = false;            // guarded by mutex_
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_WATCHED_PROCESSES_H_
