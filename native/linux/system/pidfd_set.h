#ifndef EXITWATCH_LINUX_SYSTEM_PIDFD_SET_H_
#define EXITWATCH_LINUX_SYSTEM_PIDFD_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// Pidfds to wait for together. Each becomes ready when its process has died, and again when it has
// been reaped. They have their own epoll set, which is edge-triggered: a level-triggered one would
// fire for as long as a zombie exists.
class PidfdSet {
 public:
  // A pidfd that may be ready. Look at its process: the event may be from before the descriptor was
  // closed and its number reused.
  struct Ready {
    int32_t pid;
    int pidfd;
  };

  SystemError Open();
  void Close() { epoll_.Reset(); }

  // Readable while there is something to take.
  int fd() const { return epoll_.Get(); }

  // For any thread. A pidfd leaves the set when it is closed. False if the kernel has no room for
  // it.
  bool Add(int pidfd, int32_t pid);

  // Takes some of the ready pidfds. True if there may be more.
  bool Take(std::vector<Ready>& ready);

 private:
  UniqueFd epoll_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_PIDFD_SET_H_
