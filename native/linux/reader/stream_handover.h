#ifndef EXITWATCH_LINUX_READER_STREAM_HANDOVER_H_
#define EXITWATCH_LINUX_READER_STREAM_HANDOVER_H_

#include <atomic>
#include <cstdint>

#include "linux/connector/connector_stream.h"
#include "linux/reader/reader_epoll.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// Decides whether the reader's thread or the owner's event loop waits for the stream. The loop gets
// an offer, accepts it, and waits for the doorbell; the thread can take the stream back at any
// time. Everything but the atomics is for the thread that reads.
class StreamHandover {
 public:
  // kHeld: nobody, even for what the filter passes.
  enum class Listener { kThread, kLoop, kNobody, kHeld };

  explicit StreamHandover(ReaderEpoll& epoll) : epoll_(epoll) {}

  SystemError Open();
  void Close() { doorbell_.Reset(); }

  // The stream has a new socket: the thread waits for it first.
  SystemError Attach(ConnectorStream& stream);
  void Detach();

  void Listen(Listener listener, uint64_t now_ns);

  // Offers the stream to the loop. False if it already has the stream or the offer, or was recently
  // too busy.
  bool Offer(uint64_t now_ns);

  // The loop accepts the offer. False if it does not get the stream.
  bool Accept(uint64_t now_ns);
  void Decline() { is_offered_ = false; }

  // The thread has the stream again from its next wait on.
  void Withdraw() { reads_in_loop_ = false; }

  // For any thread.
  bool is_offered() const { return is_offered_; }
  bool reads_in_loop() const { return reads_in_loop_; }

  // An epoll set. While the loop listens, it is readable when the stream rings.
  int doorbell() const { return doorbell_.Get(); }

 private:
  ReaderEpoll& epoll_;
  ConnectorStream* stream_ = nullptr;  // while attached
  UniqueFd doorbell_;
  Listener listener_ = Listener::kThread;
  std::atomic<bool> is_offered_{false};
  std::atomic<bool> reads_in_loop_{false};
  uint64_t next_offer_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_STREAM_HANDOVER_H_
