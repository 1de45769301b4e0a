#ifndef EXITWATCH_LINUX_READER_TRACED_SIGNALS_H_
#define EXITWATCH_LINUX_READER_TRACED_SIGNALS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "abi/record.h"
#include "core/queues/signal_queue.h"
#include "linux/bpf/signal_trace.h"
#include "linux/bpf/trace_trial.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The signals that the trace has seen, on their way to JavaScript, and what is known of its gaps.
// Open() to Collect() are for the reader; the rest for any thread, but Begin() and Close() while
// there is no reader.
class TracedSignals {
 public:
  explicit TracedSignals(CgroupPaths& cgroups);

  // To be called by the owner, before the reader begins.
  SystemError Begin();

  // Where the trace cannot be had, refusal() tells why, and everything else does nothing; otherwise
  // trial() has what it is worth. `watched`: whose signals are reported; nullptr: everybody's.
  // `spoil`: see SpoilLayout().
  void Open(KernelTypes& types, WatchedBitmap* watched, const KernelClock& clock,
            const std::string& spoil);
  void Close();

  // It is clear whether signals are traced; any number of times. Await() blocks until then, for so
  // long at most.
  void Settle();
  void Await(uint64_t timeout_ns) const;

  bool is_open() const { return static_cast<bool>(trace_); }
  int fd() const { return trace_.fd(); }

  // Moves all that was generated before into the queue, and where something was lost, a gap to
  // `records`. Then tells of the exits among these whether the trace saw their observed life. True
  // when JavaScript should have a look.
  bool Collect(const KernelClock& clock, std::vector<Record>& records);

  SignalQueue& queue() { return queue_; }
  BpfRefusal refusal();
  std::shared_ptr<const TraceTrial> trial();

  // Somebody wants to know of every signal at once.
  void Listen(bool listens);

 private:
  // Of the OOM killer.
  struct Victim {
    uint64_t memory;
    uint64_t time_ns;
    int32_t by_thread;
    uint64_t by_start;
  };

  void OnRecord(const SignalRecord& record, const KernelClock& clock);
  bool IsOfVictim(const SignalRecord& record) const;

  CgroupPaths& cgroups_;
  UniqueFd settled_;  // eventfd; readable from Settle() on
  std::mutex mutex_;
  SignalTrace trace_;                        // opened and closed under mutex_
  BpfRefusal refusal_;                       // guarded by mutex_
  std::shared_ptr<const TraceTrial> trial_;  // the same
  std::atomic<bool> listens_{false};
  SignalQueue queue_;
  std::vector<Victim> victims_;  // lately
  uint64_t unheld_ = 0;          // did not fit into the queue
  uint64_t lost_ = 0;            // of which a gap has told
  uint64_t complete_ns_ = 0;     // since then nothing was lost that has not been told
  uint64_t collected_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_TRACED_SIGNALS_H_
