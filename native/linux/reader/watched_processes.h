#ifndef EXITWATCH_LINUX_READER_WATCHED_PROCESSES_H_
#define EXITWATCH_LINUX_READER_WATCHED_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "abi/reader.h"
#include "core/groups/stream_kind.h"
#include "core/groups/thread_group_aggregator.h"
#include "core/groups/watch_set.h"
#include "linux/bpf/cgroup_paths.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/opened_process.h"
#include "linux/system/pidfd_set.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The watched processes and their pidfds. Add() and Remove() are for one thread, the owner's; the
// rest is for the reader's.
class WatchedProcesses {
 public:
  using Result = WatchResult;

  struct Options {
    bool opens_pidfds = false;  // pidfds report exits of processes too
    bool reports_all = false;   // the stream reports exits of all processes to everyone
    bool has_stream = true;     // there is a stream, or may be: see SetStream()
  };

  // `wake` makes the reader call Check().
  WatchedProcesses(const Options& options, CgroupPaths& cgroups, std::function<void()> wake)
      : options_(options),
        cgroups_(cgroups),
        wake_(std::move(wake)),
        stream_(options.has_stream ? StreamKind::kThreads : StreamKind::kNone) {}

  // Call this before the reader begins.
  SystemError Open();

  // Watches the process with this pid, start and inode. kGone if there is no such process now.
  Result Add(int32_t pid, uint64_t start_ticks, uint64_t inode, SystemError* error);

  // Watches whichever process has this pid now, and says which it is; a kernel thread is none. Not
  // for a pid of which a process is watched already.
  Result AddByPid(int32_t pid, GroupIdentity* added, SystemError* error);
  void Remove(int32_t pid, uint64_t start_ticks, uint64_t inode);

  WatchSet& set() { return set_; }

  // The pidfds of watches, and of other processes that the reader waits for.
  PidfdSet& pidfds() { return pidfds_; }

  // From now on the stream reports the exit of every live process. Call Check() afterwards.
  void Arm();

  void SetStream(StreamKind stream);

  // Looks at watches that the stream may not report: those made before it was armed, or of dying
  // processes. Drops what was removed.
  void Check(ProcessWitness& witness, ThreadGroupAggregator& aggregator);

  // A pidfd of the set is ready. If it belongs to a watch whose process is dead, the aggregator
  // takes it over. `not_ready_ns`: when it was not ready. `records_come`: the stream is intact.
  void OnReady(const PidfdSet::Ready& ready, uint64_t not_ready_ns, bool records_come,
               ThreadGroupAggregator& aggregator);

  // Removes the watch of the process that exited at `end_ns`; see WatchSet::Take().
  std::optional<Watch> Take(const GroupIdentity& identity, uint64_t end_ns);

  struct Ended {
    int32_t count = 0;
    bool is_complete = true;  // otherwise some must be looked at again
  };

  // Looks at all watches because events were lost. `reported_ns`: all exits before were seen.
  Ended CheckAll(ProcessWitness& witness, ThreadGroupAggregator& aggregator, uint64_t reported_ns);

  // Whether any watch has a pidfd.
  bool has_pidfds() const { return set_.with_pidfd() > 0; }

  // Watches that only the stream reports.
  size_t without_pidfd() const { return set_.without_pidfd(); }

  // Closes everything.
  void Clear();

 private:
  SystemError OpenProcess(int32_t pid, OpenedProcess* process);
  Result Register(OpenedProcess process, SystemError* error);
  struct Pinned {
    GroupIdentity identity;
    UniqueFd pidfd;
    uint64_t alive_ns;
    ThreadGroup::Cause cause;
    bool expects_event;   // the stream will report it too, by its first thread's exit
    bool expects_record;  // or by its last thread's record, since that one is still running
  };

  // A process that was dying, or may have been, when its watch began.
  struct Doubt {
    GroupIdentity identity;
    UniqueFd pidfd;  // none if none can be opened
    uint64_t alive_ns;
    ThreadGroup::Cause cause;
  };

  Result AddByNumber(int32_t pid, uint64_t start_ticks, uint64_t inode, SystemError* error);
  void CheckDoubt(Doubt& doubt, ProcessWitness& witness, ThreadGroupAggregator& aggregator);
  ThreadGroup::Cause CauseOfDead() const;
  ThreadGroup::Outstanding OutstandingOf(const Pinned& pinned, bool records_come) const;
  void Release(const Watch& watch);
  std::optional<Pinned> TakeDead(int pidfd, int32_t pid);

  const Options options_;
  CgroupPaths& cgroups_;
  const std::function<void()> wake_;
  WatchSet set_;
  PidfdSet pidfds_;
  KernelClock owner_clock_;
  std::mutex mutex_;
  StreamKind stream_;                       // guarded by mutex_
  std::unordered_map<int, Pinned> pinned_;  // by pidfd; guarded by mutex_
  std::vector<Doubt> doubts_;               // guarded by mutex_
  std::vector<int32_t> removed_;            // guarded by mutex_
  bool armed_ = false;                      // guarded by mutex_
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_WATCHED_PROCESSES_H_
