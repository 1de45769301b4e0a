#ifndef EXITWATCH_LINUX_EXIT_READER_H_
#define EXITWATCH_LINUX_EXIT_READER_H_

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/ended_groups.h"
#include "core/exit_rate.h"
#include "core/record_queue.h"
#include "core/thread_group_aggregator.h"
#include "linux/canary.h"
#include "linux/connector_stream.h"
#include "linux/kernel_clock.h"
#include "linux/known_processes.h"
#include "linux/linux_witness.h"
#include "linux/silence_detector.h"
#include "linux/system_error.h"
#include "linux/thread.h"
#include "linux/timeliness.h"
#include "linux/traced_signals.h"
#include "linux/unique_fd.h"
#include "linux/watched_processes.h"

namespace exitwatch {

// Reads the connector and pidfds in a thread of its own, whatever JavaScript is doing, and puts the
// ends of processes into a queue. Start(), Stop() and watches are for one thread, the owner's; the
// rest runs in the reader's.
//
// With the group-aware filter, and while there is no storm, the owner's event loop may read the
// stream itself: that saves waking one thread to wake another. As soon as it is too busy for that,
// the kernel wakes the reader's thread instead.
class ExitReader {
 public:
  enum class StreamUse {
    kRequired,   // without the stream there is nothing
    kPreferred,  // where there is none, pidfds tell the ends of watched processes
    kNone,
  };

  struct Options {
    ConnectorStream::Options stream;
    StreamUse use = StreamUse::kRequired;
    bool guarded = false;  // watched processes have a pidfd each
    bool traced = false;   // signals are told, too, where that can be had
    std::string spoil;     // what the trace misreads on purpose; see SpoilLayout()
    size_t queue_limit = 0;
    uint64_t canary_interval_ns = 0;  // 0: none but the one at the start
    uint64_t status_timeout_ns = 0;   // see ThreadGroupAggregator
  };

  // What the readers of one Node environment share.
  struct Shared {
    KernelTypes types;
    Canary canary;
  };

  // `wake` is called in the reader's thread when there is something new in the queue.
  ExitReader(const Options& options, std::shared_ptr<Shared> shared, std::function<void()> wake);
  ~ExitReader();
  ExitReader(const ExitReader&) = delete;
  ExitReader& operator=(const ExitReader&) = delete;

  // Returns when the thread runs; a kReady or kFailed record tells how it went on.
  SystemError Start();

  // After Start(): blocks until signals are traced, or it is clear that they will not be; no longer
  // than this.
  void AwaitTrace(uint64_t timeout_ns) const;

  // Ends the thread and closes everything; any number of times.
  void Stop();

  WatchedProcesses& watched() { return watched_; }
  RecordQueue& queue() { return queue_; }
  TracedSignals& signals() { return signals_; }
  CgroupPaths& cgroups() { return cgroups_; }

  // Has the reader look at everything now; from any thread.
  void Wake() {
    if (signal_) Signal();
  }
  uint64_t wakeups() const { return wakeups_.load(std::memory_order_relaxed); }
  uint64_t rejected() const { return rejected_.load(std::memory_order_relaxed); }

  // Whether the owner's event loop may read the stream: told by `wake`. Then it calls ReadInLoop(),
  // and, where that is true, ReadNow() whenever bell() is readable, until that is false.
  bool may_read_in_loop() const { return is_offered_; }
  bool ReadInLoop();
  int bell() const { return bell_.Get(); }
  bool ReadNow();

  // Why the group-aware filter is not in use; to be asked when the kReady record was taken, or one
  // of kSource.
  BpfRefusal filter_refusal();

  // How long ago something last came through the stream; nothing before the start, and where the
  // stream is not in use.
  std::optional<uint64_t> NsSinceProof() const;

 private:
  // Of the epoll set.
  enum Tag : uint64_t { kSignalTag, kPidfdsTag, kSocketTag, kTraceTag, kRingTag };

  // Who waits for the stream's socket.
  enum class Listener { kThread, kLoop, kNobody };

  void Run();
  void Signal();
  SystemError Arm();
  SystemError AddToEpoll(int fd, uint64_t tag, uint32_t events);
  SystemError AddSocketToEpoll();
  SystemError OpenTrace();
  void ReadProcesses();

  SystemError OpenStream();
  SystemError Subscribe();
  SystemError ProveThatEventsArrive();
  void CloseStream(const SystemError& error);
  void RetryStream();
  void StageSource(Record::Kind kind, const SystemError& error);

  uint64_t Deadline() const;
  bool Wait();
  int Sleep(epoll_event* events, int timeout_ms);
  void Listen(Listener listener);
  void OfferToLoop();
  void Pass();
  bool ReadStreamInLoop();
  uint64_t SettledUntil(bool is_empty, uint64_t begin_ns) const;
  bool Drain();
  bool DrainEvents();
  void TakeReady();
  void TellGuarded(bool has_ready);
  void TellReady(bool has_read);
  void OnEvent(const ProcEvent& event);
  void OnRecord(const GroupRecord& record);
  uint64_t Drops() { return stream_.Drops(clock_.Now()) + unheld_; }
  void NoticeDrops();
  void DoubtStaged();
  bool RecordsCome() const;
  void TellDrops();
  void NoticeFailure();
  SystemError SubscribeAnew();
  void RepairAfterGap(Record gap, uint64_t told_ns);
  int32_t RecheckWatches();

  void OnEnd(const ThreadGroup& group);
  void Flush();
  void Fail(const SystemError& error);

  const Options options_;
  const std::shared_ptr<Shared> shared_;
  const std::function<void()> wake_;
  CgroupPaths cgroups_;
  RecordQueue queue_;
  WatchedProcesses watched_;
  WatchedBitmap watched_bitmap_;
  TracedSignals signals_;
  std::atomic<uint64_t> wakeups_{0};
  std::atomic<uint64_t> rejected_{0};
  std::atomic<bool> stopping_{false};

  // Held by whoever reads: the thread, but while it sleeps, or the loop. It guards all that
  // follows.
  std::mutex reading_;
  std::atomic<bool> is_offered_{false};
  std::atomic<bool> reads_in_loop_{false};
  uint64_t offer_ns_ = 0;  // not before
  uint64_t sleeps_until_ns_ = 0;
  UniqueFd bell_;  // epoll set: the stream's socket, while the loop listens

  KernelClock clock_;
  Timeliness timeliness_;
  UniqueFd epoll_;
  UniqueFd signal_;         // eventfd: watches to check, or stop
  UniqueFd stop_;           // eventfd: stop
  UniqueFd trace_settled_;  // eventfd: readable once it is clear whether signals are traced
  ConnectorStream stream_;
  std::mutex filter_mutex_;
  BpfRefusal filter_refusal_;  // guarded by filter_mutex_
  SilenceDetector silence_;
  EndedGroups ended_;  // with the group-aware filter
  std::optional<LinuxWitness> witness_;
  std::optional<ThreadGroupAggregator> aggregator_;
  KnownProcesses known_;
  std::vector<Record> staged_;
  std::vector<PidfdSet::Ready> ready_;

  int32_t own_tgid_ = 0;
  SystemError failure_;         // the end of everything
  SystemError stream_failure_;  // the stream is broken

  ExitRate rate_;
  size_t read_ = 0;  // events and records since the last wait
  std::atomic<bool> has_stream_{false};
  bool is_ready_ = false;           // kReady was told
  uint64_t retry_ns_ = UINT64_MAX;  // when to try the stream again
  Listener listener_ = Listener::kThread;
  bool has_events_ = false;  // the stream's socket can be read
  uint64_t armed_ns_ = 0;
  uint64_t wait_begin_ns_ = 0;
  uint64_t wake_ns_ = 0;
  uint64_t not_ready_ns_ = 0;   // pidfds that are ready now were not, then
  bool more_ready_ = true;      // there were more than were taken
  uint64_t ready_ns_ = 0;       // when the first of those that were taken was
  uint64_t ready_written_ = 0;  // what was written then; see ConnectorStream::Written()
  uint64_t alive_ns_ = 0;       // and when it was not ready
  uint64_t last_event_ns_ = 0;
  uint64_t drops_ = 0;            // of which a gap has told
  uint64_t unheld_ = 0;           // processes whose end nobody will tell us: no handle could be had
  uint64_t no_drops_ns_ = 0;      // until then nothing was dropped that has not been told
  uint64_t told_ns_ = 0;          // all exits before the latest gap
  uint64_t silent_since_ns_ = 0;  // not 0: a silence that is to be told
  uint64_t loss_begin_ns_ = 0;    // not 0: a gap that is to be told
  uint64_t loss_noticed_ns_ = 0;  // and when it was noticed
  uint64_t gap_end_ns_ = 0;       // of the latest gap
  uint64_t recheck_ns_ = UINT64_MAX;  // when to look again at watches that could not be looked at

  Thread thread_;  // last: it is joined before anything above goes
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_EXIT_READER_H_
