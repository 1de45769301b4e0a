#ifndef EXITWATCH_LINUX_CONNECTOR_CONNECTOR_STREAM_H_
#define EXITWATCH_LINUX_CONNECTOR_CONNECTOR_STREAM_H_

#include <cstddef>
#include <cstdint>

#include "linux/bpf/ebpf_filter.h"
#include "linux/bpf/kernel_types.h"
#include "linux/bpf/watched_bitmap.h"
#include "linux/connector/connector_socket.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// Properties of an open stream.
struct StreamProperties {
  size_t buffer_bytes = 0;      // of the kernel's buffer
  bool names_programs = false;  // exits include the names of their executables
};

// The kernel's stream of exits: the connector's socket behind the best available filter. With the
// eBPF filter, exits of processes come as records, and events are only doorbells and canaries. With
// the cBPF filter, exits of threads come as events.
class ConnectorStream {
 public:
  struct Options {
    bool watched_only = true;
    bool force_cbpf = false;  // even if the eBPF filter is available
    int receive_buffer_bytes = 0;
    CommandLines* command_lines = nullptr;  // gets them, if they are wanted
    bool is_held = false;                   // see EbpfFilter::Open()
  };

  // `watched`: the processes that the filter passes if `watched_only` is set.
  ConnectorStream(const Options& options, WatchedBitmap& watched, CgroupPaths& cgroups)
      : options_(options),
        watched_(watched),
        cgroups_(cgroups),
        filter_(cgroups, options.command_lines) {}
  ~ConnectorStream() { Close(); }

  // Waits for at most half a second, or until `stop_fd` is readable.
  SystemError Open(KernelTypes& types, int stop_fd);

  // Replaces the socket with a new one.
  SystemError Subscribe(int stop_fd);

  void Close();

  bool is_open() const { return socket_.fd() >= 0; }
  int fd() const { return socket_.fd(); }
  bool has_ebpf_filter() const { return static_cast<bool>(filter_); }
  const BpfRefusal& filter_refusal() const { return filter_refusal_; }

  // The kernel's buffer for what it reports.
  StreamProperties properties() const;

  // What the kernel has dropped since Open(). If the socket's messages are only doorbells, their
  // count may be slightly out of date.
  uint64_t Drops(uint64_t now_ns);

  // With the eBPF filter: the listener of the doorbell may be busy. Then `ring_fd` becomes readable
  // for the fallback reader.
  int ring_fd() const { return filter_.ring_fd(); }
  void SetFallbackReader(bool has_one) {
    if (filter_) filter_.SetFallbackReader(has_one);
  }

  // Call this before sleeping. False if there is something to read.
  bool ArmDoorbell() { return !filter_ || filter_.ArmDoorbell(); }

  // The position up to which records were written or are being written, and whether everything up
  // to a position was read. Unknown with the cBPF filter.
  uint64_t Written() const { return filter_ ? filter_.Written() : 0; }
  bool HasRead(uint64_t written) const { return filter_ && filter_.HasRead(written); }

  enum class Read { kEmpty, kMore, kFailed };

  // Reads some events. Counts those that are not from the kernel in `rejected`.
  template <typename OnEvent>
  Read ReadEvents(OnEvent on_event, uint64_t* rejected, SystemError* error) {
    if (socket_.fd() < 0) return Read::kEmpty;
    for (int i = 0; i < kBatch; i++) {
      ProcEvent event;
      switch (socket_.ReadEvent(&event, error)) {
        case ConnectorSocket::Read::kEvent:
          on_event(event);
          // There is only one doorbell at a time.
          if (filter_ && event.what == kProcEventExit) return Read::kEmpty;
          break;
        case ConnectorSocket::Read::kRejected:
          ++*rejected;
          break;
        case ConnectorSocket::Read::kEmpty:
          return Read::kEmpty;
        case ConnectorSocket::Read::kFailed:
          return Read::kFailed;
      }
    }
    return Read::kMore;
  }

  // Reads some records of the eBPF filter.
  template <typename OnRecord>
  Read ReadRecords(OnRecord on_record) {
    return !filter_ || filter_.Read(kBatch, on_record) ? Read::kEmpty : Read::kMore;
  }

 private:
  static constexpr int kBatch = 1024;

  const Options options_;
  WatchedBitmap& watched_;
  CgroupPaths& cgroups_;
  ConnectorSocket socket_;
  uint64_t former_drops_ = 0;  // of previous sockets and filters
  uint64_t socket_drops_ = 0;
  uint64_t counted_ns_ = 0;
  EbpfFilter filter_;
  BpfRefusal filter_refusal_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_CONNECTOR_CONNECTOR_STREAM_H_
