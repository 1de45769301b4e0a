#ifndef EXITWATCH_LINUX_READER_TRACED_SIGNALS_H_
#define EXITWATCH_LINUX_READER_TRACED_SIGNALS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "abi/record.h"
#include "core/queues/signal_queue.h"
#include "linux/bpf/oom_victims.h"
#include "linux/bpf/signal_trace.h"
#include "linux/bpf/trace_trial.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The signals that the trace has seen, on their way to JavaScript, and what is known about gaps.
// Open() to Collect() are for the reader. The rest is for any thread, except that Begin() and
// Close() require that there is no reader.
class TracedSignals {
 public:
  TracedSignals(CgroupPaths& cgroups, bool tells_command_lines);

  // For the owner, before the reader begins.
  SystemError Begin();

  // If the trace is unavailable, refusal() has the reason, and everything else does nothing.
  // Otherwise trial() has the result of its trial. `watched`: the processes whose signals are
  // reported; nullptr: all. `spoil`: see SpoilLayout().
  void Open(KernelTypes& types, WatchedBitmap* watched, const KernelClock& clock,
            const std::string& spoil);
  void Close();

  // Settle(): whether signals are traced is now decided; may be called repeatedly. Await() blocks
  // until then, at most for `timeout_ns`.
  void Settle();
  void Await(uint64_t timeout_ns) const;

  bool is_open() const { return static_cast<bool>(trace_); }
  int fd() const { return trace_.fd(); }

  // Moves all signals generated so far into the queue and, if some were lost, adds a gap to
  // `records`. Then notes in the exits among `records` whether the trace saw the observed run of
  // the process. True if JavaScript should look.
  bool Collect(const KernelClock& clock, std::vector<Record>& records);

  SignalQueue& queue() { return queue_; }

  // Those of senders, and of processes that exit; nullptr if they are not wanted.
  CommandLines* command_lines() { return tells_command_lines_ ? &command_lines_ : nullptr; }
  BpfRefusal refusal();
  std::shared_ptr<const TraceTrial> trial();

  // Whether somebody wants every signal at once.
  void Listen(bool listens);

 private:
  void OnRecord(const SignalRecord& record, const KernelClock& clock);
  SignalWakeup Wakeup() const;

  CgroupPaths& cgroups_;
  const bool tells_command_lines_;
  CommandLines command_lines_;
  UniqueFd settled_;  // eventfd; readable from Settle() on
  std::mutex mutex_;
  SignalTrace trace_;                        // opened and closed under mutex_
  BpfRefusal refusal_;                       // guarded by mutex_
  std::shared_ptr<const TraceTrial> trial_;  // guarded by mutex_
  std::atomic<bool> listens_{false};
  // Signals of other processes are told at once: only watched processes are looked at.
  bool tells_others_ = false;
  SignalQueue queue_;
  OomVictims victims_;
  uint64_t unheld_ = 0;       // signals that did not fit into the queue or could not be read
  uint64_t lost_ = 0;         // losses that gaps have reported
  uint64_t complete_ns_ = 0;  // nothing was lost unreported since
  uint64_t collected_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_TRACED_SIGNALS_H_
