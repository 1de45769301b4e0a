#ifndef EXITWATCH_LINUX_READER_STREAM_REPAIR_H_
#define EXITWATCH_LINUX_READER_STREAM_REPAIR_H_

#include <cstdint>
#include <limits>

#include "abi/record.h"
#include "linux/reader/exit_collector.h"
#include "linux/reader/exit_delivery.h"
#include "linux/reader/reader_epoll.h"
#include "linux/reader/stream_session.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// Repairs a stream that lost something, went silent or broke: reports a gap, looks at everything
// whose exit may lie in it, and reopens the stream. For the reader's thread.
class StreamRepair {
 public:
  struct Options {
    bool watched_only = true;
    bool is_stream_required = true;
    uint64_t canary_interval_ns = 0;
  };

  StreamRepair(const Options& options, const KernelClock& clock, const ReaderEpoll& epoll,
               StreamSession& session, ExitCollector& collector, WatchedProcesses& watched,
               ExitDelivery& delivery);

  // Reports what the stream has dropped.
  void ReportLoss();

  // Does what is due in a round that began at `begin_ns`.
  void RepairWhatIsDue(uint64_t begin_ns);

  // From now on only pidfds report exits of watched processes. Processes without one are checked
  // now and then. `error`: why there is no stream.
  void GiveUpStream(const SystemError& error);

  // Whether every watch is taken care of: otherwise some will be looked at again.
  bool is_complete() const { return recheck_ns_ == kNever; }

  uint64_t Deadline() const { return recheck_ns_ < retry_ns_ ? recheck_ns_ : retry_ns_; }

  // The stream is gone, but required.
  const SystemError& failure() const { return failure_; }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  void RepairBreak();
  void RetryStream();
  void Repair(GapRecord gap, uint64_t reported_ns);
  int32_t RecheckWatches();

  const Options options_;
  const KernelClock& clock_;
  const ReaderEpoll& epoll_;
  StreamSession& session_;
  ExitCollector& collector_;
  WatchedProcesses& watched_;
  ExitDelivery& delivery_;
  SystemError failure_;
  uint64_t reported_ns_ = 0;      // all exits before it were reported: the start of the latest gap
  uint64_t retry_ns_ = kNever;    // when to retry the stream
  uint64_t recheck_ns_ = kNever;  // when to look again at watches that could not be looked at
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_STREAM_REPAIR_H_
