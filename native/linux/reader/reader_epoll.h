#ifndef EXITWATCH_LINUX_READER_READER_EPOLL_H_
#define EXITWATCH_LINUX_READER_READER_EPOLL_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// What the reader's thread sleeps on: an epoll set of the descriptors that it reads, and two
// eventfds with which other threads wake or end it.
class ReaderEpoll {
 public:
  // Identifies a descriptor of the set.
  enum class Source : uint64_t { kWakeEvent, kPidfds, kStreamSocket, kTrace, kRing };

  struct Wakeup {
    SystemError error;
    bool has_pidfds = false;
    bool has_socket = false;
    bool has_ring = false;
    // Something else than the stream's socket is ready.
    bool is_urgent = false;
    // The process was stopped (SIGSTOP) and continued: what is ready may have been ready for long.
    bool was_stopped = false;
  };

  SystemError Open();
  void Close();

  SystemError Add(int fd, Source source, uint32_t events);
  bool SetEvents(int fd, Source source, uint32_t events);

  // Sleeps until something is ready; -1: without a timeout. `held` is unlocked meanwhile.
  Wakeup Wait(int timeout_ms, std::mutex& held);

  // From any thread, while it is open.
  void Wake();

  // Wakes the thread for the last time, also if it polls stop_fd().
  void Stop();
  const std::atomic<bool>& is_stopping() const { return is_stopping_; }
  int stop_fd() const { return stop_event_.Get(); }

 private:
  UniqueFd epoll_;
  UniqueFd wake_event_;
  UniqueFd stop_event_;
  std::atomic<bool> is_stopping_{false};
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_READER_EPOLL_H_
