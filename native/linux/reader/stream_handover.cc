#include "linux/reader/stream_handover.h"

#include <sys/epoll.h>

#include <cerrno>

namespace exitwatch {

namespace {

// How long a loop that was too busy to read the stream gets no new offer.
constexpr uint64_t kBusyNs = 100'000'000;

}  // namespace

SystemError StreamHandover::Open() {
  doorbell_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!doorbell_) return {Failure::kSystem, errno, "epoll_create1"};
  return {};
}

SystemError StreamHandover::Attach(ConnectorStream& stream) {
  stream_ = &stream;
  listener_ = Listener::kThread;
  reads_in_loop_ = false;
  return epoll_.Add(stream.fd(), ReaderEpoll::Source::kStreamSocket, EPOLLIN);
}

void StreamHandover::Detach() {
  stream_ = nullptr;
  listener_ = Listener::kThread;
  reads_in_loop_ = false;
}

void StreamHandover::Listen(Listener listener, uint64_t now_ns) {
  if (stream_ == nullptr) return;
  // With the eBPF filter, leaving the doorbell unarmed is enough.
  if (listener == Listener::kNobody && stream_->has_ebpf_filter()) listener = Listener::kThread;
  if (listener_ == listener) return;
  if (listener_ == Listener::kLoop) {
    reads_in_loop_ = false;
    stream_->SetFallbackReader(false);
    epoll_ctl(doorbell_.Get(), EPOLL_CTL_DEL, stream_->fd(), nullptr);
    next_offer_ns_ = now_ns + kBusyNs;
  }
  const uint32_t events = listener == Listener::kThread ? uint32_t{EPOLLIN} : 0;
  if (!epoll_.SetEvents(stream_->fd(), ReaderEpoll::Source::kStreamSocket, events)) return;
  listener_ = listener;
  if (listener != Listener::kLoop) return;
  epoll_event event = {};
  event.events = EPOLLIN;
  reads_in_loop_ = epoll_ctl(doorbell_.Get(), EPOLL_CTL_ADD, stream_->fd(), &event) == 0;
  if (reads_in_loop_) {
    stream_->SetFallbackReader(true);
  } else {
    Listen(Listener::kThread, now_ns);
  }
}

bool StreamHandover::Offer(uint64_t now_ns) {
  if (reads_in_loop_ || is_offered_ || now_ns < next_offer_ns_) return false;
  is_offered_ = true;
  return true;
}

bool StreamHandover::Accept(uint64_t now_ns) {
  if (stream_ == nullptr || !stream_->has_ebpf_filter()) return false;
  Listen(Listener::kLoop, now_ns);
  return reads_in_loop_;
}

}  // namespace exitwatch
