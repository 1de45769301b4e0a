#include "linux/connector/connector_stream.h"

namespace exitwatch {

namespace {

// Records get this part of the kernel buffer that was requested: a record is a fifth of the size of
// a message.
constexpr int kRecordsPart = 4;

// How old the count of dropped doorbells may be. Asking for it costs as much as reading one.
constexpr uint64_t kCountNs = 100'000'000;

}  // namespace

SystemError ConnectorStream::Open(KernelTypes& types, int stop_fd) {
  if (options_.force_cbpf) {
    filter_refusal_ = {BpfRefusal::Reason::kNotWanted, 0, ""};
  } else {
    const auto ring_bytes = static_cast<size_t>(options_.receive_buffer_bytes / kRecordsPart);
    filter_refusal_ = filter_.Open(types, ring_bytes, options_.watched_only ? &watched_ : nullptr,
                                   options_.is_held);
  }
  if (filter_refusal_) filter_ = EbpfFilter(cgroups_, options_.command_lines);
  return Subscribe(stop_fd);
}

SystemError ConnectorStream::Subscribe(int stop_fd) {
  former_drops_ += socket_.Drops();
  socket_drops_ = 0;
  socket_ = ConnectorSocket();
  return socket_.Open({options_.receive_buffer_bytes, filter_.program(), stop_fd});
}

void ConnectorStream::Close() {
  former_drops_ += socket_.Drops() + (filter_ ? filter_.Lost() : 0);
  socket_drops_ = 0;
  socket_ = ConnectorSocket();
  filter_ = EbpfFilter(cgroups_, options_.command_lines);
}

StreamProperties ConnectorStream::properties() const {
  if (filter_) return {filter_.ring_bytes(), filter_.names_programs()};
  return {static_cast<size_t>(socket_.receive_buffer_bytes()), false};
}

uint64_t ConnectorStream::Drops(uint64_t now_ns) {
  if (!filter_ || now_ns >= counted_ns_ + kCountNs) {
    socket_drops_ = socket_.Drops();
    counted_ns_ = now_ns;
  }
  return former_drops_ + socket_drops_ + (filter_ ? filter_.Lost() : 0);
}

}  // namespace exitwatch
