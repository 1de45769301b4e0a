#ifndef EXITWATCH_LINUX_CONNECTOR_CONNECTOR_SOCKET_H_
#define EXITWATCH_LINUX_CONNECTOR_CONNECTOR_SOCKET_H_

#include <cstddef>
#include <cstdint>

#include "core/parse/proc_event.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// One socket of the kernel's process events connector: filtered and subscribed.
class ConnectorSocket {
 public:
  struct Options {
    int receive_buffer_bytes = 0;
    int filter_program = -1;  // an eBPF filter, for exits only; -1: use the cBPF filter
    int stop_fd = -1;         // when readable, give up waiting
  };

  enum class Read {
    kEvent,
    kRejected,  // not from the kernel, or malformed
    kEmpty,
    kFailed,
  };

  // Opens, filters, binds and subscribes; returns when the kernel has confirmed the subscription.
  // If the kernel stays silent, waits for at most half a second.
  SystemError Open(const Options& options);

  int fd() const { return fd_.Get(); }

  // The effective size of the receive buffer.
  int receive_buffer_bytes() const { return receive_buffer_bytes_; }

  Read ReadEvent(ProcEvent* event, SystemError* error);

  // Messages that the kernel has dropped since the socket was opened, because its buffer was full.
  uint32_t Drops() const;

 private:
  SystemError OpenOnce(const Options& options);
  bool AttachFilter(int program) const;
  SystemError Subscribe(const Options& options);
  SystemError Send(const uint32_t* payload, size_t words, uint32_t ack) const;
  SystemError AwaitAnswer(uint32_t ack, int stop_fd);

  UniqueFd fd_;
  int receive_buffer_bytes_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_CONNECTOR_CONNECTOR_SOCKET_H_
