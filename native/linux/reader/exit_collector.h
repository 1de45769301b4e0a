#ifndef EXITWATCH_LINUX_READER_EXIT_COLLECTOR_H_
#define EXITWATCH_LINUX_READER_EXIT_COLLECTOR_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/bpf/group_filter.h"
#include "core/groups/ended_groups.h"
#include "core/groups/exit_attribution.h"
#include "core/groups/stream_kind.h"
#include "core/groups/thread_group_aggregator.h"
#include "core/parse/proc_event.h"
#include "linux/bpf/command_lines.h"
#include "linux/reader/exit_delivery.h"
#include "linux/reader/known_processes.h"
#include "linux/reader/linux_witness.h"
#include "linux/reader/watched_processes.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/pidfd_set.h"

namespace exitwatch {

// Joins what the stream, pidfds and /proc report into one exit per process, and stages the wanted
// ones. For the thread that reads.
class ExitCollector {
 public:
  struct Options {
    bool watched_only = true;
    uint64_t status_timeout_ns = 0;         // see ThreadGroupAggregator
    CommandLines* command_lines = nullptr;  // if they are wanted
  };

  ExitCollector(const Options& options, const KernelClock& clock, WatchedProcesses& watched,
                ExitDelivery& delivery);

  // Closes all handles.
  void Close() {
    attribution_.Close();
    aggregator_.Close();
  }

  // Sets what the stream reports from now on.
  void SetStream(StreamKind stream);
  void OnEvent(const ProcEvent& event);
  void OnReport(const GroupReport& report);

  // A pidfd is ready; see WatchedProcesses::OnReady().
  void OnPidfd(const PidfdSet::Ready& ready, uint64_t not_ready_ns, bool records_come) {
    watched_.OnReady(ready, not_ready_ns, records_come, aggregator_);
  }

  // Looks at watches that were added or removed since the last call.
  void CheckWatches() { watched_.Check(witness_, aggregator_); }

  // Something was lost: looks at all watches again. All exits before `reported_ns` were reported.
  WatchedProcesses::Ended RecheckWatches(uint64_t reported_ns) {
    return watched_.CheckAll(witness_, aggregator_, reported_ns);
  }
  void ForgetUnconfirmed() { aggregator_.ForgetUnconfirmed(); }

  // Reads all processes of the host, unless `stop` becomes true, and finds out which known ones
  // have exited unseen. `reported_ns`: as above.
  void ReadProcesses(const std::atomic<bool>& stop, uint64_t reported_ns);

  // See ThreadGroupAggregator.
  void Settle(uint64_t stream_ns) {
    attribution_.Retry();
    aggregator_.Settle(stream_ns);
  }
  uint64_t NextDeadline() const {
    return std::min(aggregator_.NextDeadline(), attribution_.NextDeadline());
  }
  bool HasGroups() const { return aggregator_.HasGroups(); }
  bool AwaitsRecord() const { return aggregator_.AwaitsRecord(); }
  bool HasUnreported() const { return aggregator_.HasUnreported() || attribution_.HasKept(); }

  // Processes whose exit nothing will report: a debugger holds them, and no handle could be opened.
  uint64_t unheld() const { return unheld_; }

  int pidfds_fd() const { return watched_.pidfds().fd(); }

 private:
  bool IsWanted(int32_t pid);
  void OnGroupEnd(const ThreadGroup& group);
  void Deliver(const ThreadGroup& group);

  const Options options_;
  const KernelClock& clock_;
  WatchedProcesses& watched_;
  ExitDelivery& delivery_;
  LinuxWitness witness_;
  ThreadGroupAggregator aggregator_;
  ExitAttribution attribution_;
  KnownProcesses known_;
  EndedGroups ended_;  // exits that records reported
  StreamKind stream_ = StreamKind::kThreads;
  uint64_t unheld_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_EXIT_COLLECTOR_H_
