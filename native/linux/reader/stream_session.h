#ifndef EXITWATCH_LINUX_READER_STREAM_SESSION_H_
#define EXITWATCH_LINUX_READER_STREAM_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>

#include "core/queues/exit_rate.h"
#include "linux/bpf/kernel_types.h"
#include "linux/connector/connector_stream.h"
#include "linux/reader/canary.h"
#include "linux/reader/exit_collector.h"
#include "linux/reader/reader_epoll.h"
#include "linux/reader/silence_detector.h"
#include "linux/reader/stream_handover.h"
#include "linux/reader/stream_loss.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// The stream while it is open: subscribes, proves it with an event of our own, reads it, and
// watches for silence and losses, which StreamRepair then repairs. For the thread that reads,
// unless noted otherwise.
class StreamSession {
 public:
  // Shared by the readers of one Node environment.
  struct Shared {
    KernelTypes types;
    Canary canary;
  };

  // `serve_pidfds` is called while the stream is being proved, because pidfds do not wait for it.
  // Its argument says whether some are ready.
  StreamSession(const ConnectorStream::Options& options, uint64_t canary_interval_ns,
                Shared& shared, WatchedBitmap& watched, CgroupPaths& cgroups,
                const KernelClock& clock, ReaderEpoll& epoll, StreamHandover& handover,
                ExitCollector& collector, std::function<void(bool has_ready)> serve_pidfds);

  SystemError Open();
  void Close();

  // Closes the stream for good. Its counters and its state stay readable.
  void Release() { stream_.Close(); }

  // Ends a thread of our own, whose exit must come back through the stream.
  SystemError Prove();

  // Opens a new socket and proves it, several times if it stays silent.
  SystemError Resubscribe();

  // Reads what reports exits of processes. True when nothing is left to read.
  bool Read();

  // With the eBPF filter, events are only doorbells and canaries. Reads them if the socket is
  // readable or a canary is due: the loop that should read them may be busy, and a canary that
  // nobody looked for is not lost.
  void SetReadable() { is_readable_ = true; }
  void ReadDoorbells();

  // Until when all exits were read. `is_empty`: everything that existed at `begin_ns` was read.
  uint64_t SettledUntil(bool is_empty, uint64_t begin_ns) const;

  // Call this before sleeping. False if there is something to read.
  bool ArmDoorbell() { return stream_.ArmDoorbell(); }

  // Whether anything was read since the last CountsStorm().
  bool has_read() const { return read_ > 0; }

  // Counts what was read since the last call; it came since `since_ns`. True if it comes too fast
  // to be read one by one.
  bool CountsStorm(uint64_t since_ns, uint64_t now_ns);

  // What the stream has dropped, plus exits that nothing will report.
  uint64_t Drops() { return stream_.Drops(clock_.Now()) + collector_.unheld(); }
  StreamLoss& loss() { return loss_; }

  // When something is due even if nothing comes.
  uint64_t Deadline() const;

  // Whether the stream failed or is silent. Call this after everything that had come was read. May
  // fly a canary.
  bool ProbeForBreak();
  bool has_failed() const { return static_cast<bool>(failure_); }
  void SetFailure(const SystemError& error) { failure_ = error; }

  // Since when exits are unknown; 0 while the stream is not broken.
  void BeginSilence();
  void EndSilence() { silent_since_ns_ = 0; }
  uint64_t silent_since_ns() const { return silent_since_ns_; }

  // Whether every process that exits writes its record, as far as we know.
  bool RecordsCome() const;

  const ConnectorStream& stream() const { return stream_; }
  bool has_ebpf_filter() const { return stream_.has_ebpf_filter(); }

  // Nothing if there is no stream.
  std::optional<StreamProperties> properties() const;

  // For any thread.
  bool is_open() const { return is_open_; }
  BpfRefusal filter_refusal();
  std::optional<uint64_t> NsSinceProof() const;
  uint64_t rejected() const { return rejected_.load(std::memory_order_relaxed); }

 private:
  SystemError Subscribe();
  bool ReadEvents();
  void OnEvent(const ProcEvent& event);
  void OnReport(const GroupReport& report);

  const KernelClock& clock_;
  Shared& shared_;
  ReaderEpoll& epoll_;
  StreamHandover& handover_;
  ExitCollector& collector_;
  const std::function<void(bool)> serve_pidfds_;
  const int32_t own_tgid_;
  ConnectorStream stream_;
  SilenceDetector silence_;
  StreamLoss loss_;
  ExitRate rate_;
  SystemError failure_;
  std::mutex filter_mutex_;
  BpfRefusal filter_refusal_;  // guarded by filter_mutex_
  std::atomic<bool> is_open_{false};
  std::atomic<uint64_t> rejected_{0};
  bool is_readable_ = false;
  size_t read_ = 0;  // events and records since the last CountsStorm()
  uint64_t last_event_ns_ = 0;
  uint64_t silent_since_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_STREAM_SESSION_H_
