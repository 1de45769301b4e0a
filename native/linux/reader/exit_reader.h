#ifndef EXITWATCH_LINUX_READER_EXIT_READER_H_
#define EXITWATCH_LINUX_READER_EXIT_READER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "abi/reader.h"
#include "core/queues/record_queue.h"
#include "linux/bpf/cgroup_paths.h"
#include "linux/bpf/watched_bitmap.h"
#include "linux/connector/connector_stream.h"
#include "linux/reader/exit_collector.h"
#include "linux/reader/exit_delivery.h"
#include "linux/reader/reader_epoll.h"
#include "linux/reader/ready_pidfds.h"
#include "linux/reader/stream_handover.h"
#include "linux/reader/stream_repair.h"
#include "linux/reader/stream_session.h"
#include "linux/reader/traced_signals.h"
#include "linux/reader/watched_processes.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/system_error.h"
#include "linux/system/thread.h"

namespace exitwatch {

// Reads the connector and pidfds in a thread of its own, whatever JavaScript is doing, and queues
// the exits of processes. Start(), Stop() and watches are for one thread, the owner's; the rest
// runs in the reader's.
//
// With the eBPF filter, and unless there is a storm, the owner's event loop may read the stream
// itself: that saves waking one thread just to wake another. When the loop is too busy for that,
// the kernel wakes the reader's thread instead.
class ExitReader {
 public:
  using StreamUse = exitwatch::StreamUse;

  struct Options {
    ConnectorStream::Options stream;
    StreamUse use = StreamUse::kRequired;
    bool opens_pidfds = false;  // open a pidfd for each watched process
    bool traces_signals = false;
    std::string spoil;  // what the trace misreads on purpose; see SpoilLayout()
    size_t queue_limit = 0;
    uint64_t canary_interval_ns = 0;  // 0: only the one at the start
    uint64_t status_timeout_ns = 0;   // see ThreadGroupAggregator
    // How long an exit may wait for others, so that they cross together. Then the thread reads.
    uint64_t max_delay_ns = 0;
    bool tells_command_lines = false;
  };

  using Shared = StreamSession::Shared;

  // `wake` is called in the thread that reads when there is something new in the queue.
  ExitReader(const Options& options, std::shared_ptr<Shared> shared, std::function<void()> wake);
  ~ExitReader();
  ExitReader(const ExitReader&) = delete;
  ExitReader& operator=(const ExitReader&) = delete;

  // Returns when the thread runs. A kReady or kFailed record reports what became of it.
  SystemError Start();

  // Ends the thread and closes everything. May be called repeatedly.
  void Stop();

  WatchedProcesses& watched() { return watched_; }
  RecordQueue& queue() { return delivery_.queue(); }
  TracedSignals& signals() { return signals_; }
  CgroupPaths& cgroups() { return cgroups_; }

  // Makes the reader look at everything now.
  void Wake() { epoll_.Wake(); }

  // Call this after a watch was added: exits that wait for others may be its.
  void OnWatch() {
    if (options_.max_delay_ns > 0 && watched_.without_pidfd() > 0) Wake();
  }

  // Whether the owner's event loop may read the stream; `wake` announces it. The loop then calls
  // TakeStream() and, if that returns true, ReadInLoop() whenever doorbell() is readable, until it
  // returns false.
  bool offers_stream() const { return handover_.is_offered(); }
  bool TakeStream();
  int doorbell() const { return handover_.doorbell(); }
  bool ReadInLoop();

  // Why the eBPF filter is not in use. Valid once the kReady record, or one of kSource, was taken.
  BpfRefusal filter_refusal() { return session_.filter_refusal(); }

  // How long ago something last came through the stream. Nothing before the start, or while the
  // stream is not in use.
  std::optional<uint64_t> NsSinceProof() const { return session_.NsSinceProof(); }

  uint64_t wakeups() const { return wakeups_.load(std::memory_order_relaxed); }
  uint64_t rejected() const { return session_.rejected(); }

 private:
  enum class Reader { kThread, kLoop };

  void Run();
  SystemError Arm();
  SystemError OpenTrace();
  uint64_t Deadline() const;
  SystemError Wait();
  ConnectorStream::Options StreamOptions();
  bool MayHold() const;
  int HoldMs() const;
  ReaderEpoll::Wakeup Sleep(int timeout_ms);
  void ChooseListener(uint64_t now_ns);
  bool Round(Reader reader);
  void DeliverPidfds();
  void ServePidfds(bool has_ready);

  const Options options_;
  const std::shared_ptr<Shared> shared_;
  CgroupPaths cgroups_;
  TracedSignals signals_;
  ReaderEpoll epoll_;
  WatchedProcesses watched_;
  WatchedBitmap watched_bitmap_;
  std::atomic<uint64_t> wakeups_{0};

  // Held by the thread that reads: the reader's (except while it sleeps) or the loop's. Guards
  // everything below, unless noted otherwise.
  std::mutex reading_;
  KernelClock clock_;
  ExitDelivery delivery_;
  ExitCollector collector_;
  StreamHandover handover_;
  StreamSession session_;
  StreamRepair repair_;
  ReadyPidfds pidfds_;
  uint64_t sleeps_until_ns_ = 0;
  uint64_t held_since_ns_ = 0;  // what is read next came since then; 0: just now
  bool is_ready_ = false;       // kReady was delivered

  Thread thread_;  // last: joined before anything above is destroyed
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_EXIT_READER_H_
