#ifndef EXITWATCH_LINUX_READER_EXIT_DELIVERY_H_
#define EXITWATCH_LINUX_READER_EXIT_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "abi/record.h"
#include "core/groups/thread_group.h"
#include "core/groups/watch_set.h"
#include "core/queues/record_queue.h"
#include "linux/bpf/cgroup_paths.h"
#include "linux/connector/connector_stream.h"
#include "linux/reader/traced_signals.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// Turns the reader's findings into records, and hands them to JavaScript in batches, each after the
// signals that led to it. Everything but the queue is for the thread that reads.
class ExitDelivery {
 public:
  struct Options {
    bool watched_only = true;
    size_t queue_limit = 0;
  };

  // The exit of a process, and what else is known about it.
  struct End {
    const ThreadGroup& group;
    std::optional<ProcessEntry> process;
    std::optional<Watch> watch;
    bool is_zombie;
    uint64_t unknown_ns;       // see ReadingTimes
    std::optional<int> pidfd;  // shows the cgroup
    bool has_cgroup_path;      // the filter has already reported it
  };

  // `wake` makes JavaScript take what is in the queue. It runs in the thread that reads.
  ExitDelivery(const Options& options, const KernelClock& clock, CgroupPaths& cgroups,
               TracedSignals& signals, std::function<void()> wake);

  // From now on the stream is complete.
  void Begin(uint64_t now_ns) { armed_ns_ = wake_ns_ = now_ns; }

  // What is staged from now on was read after this time.
  void OnWake(uint64_t now_ns) { wake_ns_ = now_ns; }

  void Stage(const End& end);

  // `gap` must have its reason, its start and its counts.
  void StageGap(GapRecord gap);

  // The source that reports exits from now on and, if it is not the stream, why. kReady goes before
  // everything staged so far. `stream`: nothing if there is none.
  void StageSource(RecordKind kind, const SystemError& error,
                   const std::optional<StreamProperties>& stream);

  // Something was lost until now: exits of processes observed before are not lossless.
  void SetGapEnd(uint64_t now_ns) { gap_end_ns_ = now_ns; }

  // The same for exits already staged that happened since this time.
  void Doubt(uint64_t since_ns);

  // Hands over what was staged.
  void Flush();

  // Stages the last record.
  void Fail(const SystemError& error);

  void WakeOwner() { wake_(); }

  // From any thread.
  RecordQueue& queue() { return queue_; }

 private:
  const bool watched_only_;
  const KernelClock& clock_;
  CgroupPaths& cgroups_;
  TracedSignals& signals_;
  const std::function<void()> wake_;
  RecordQueue queue_;
  std::vector<Record> staged_;
  uint64_t armed_ns_ = 0;
  uint64_t wake_ns_ = 0;
  uint64_t gap_end_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_EXIT_DELIVERY_H_
