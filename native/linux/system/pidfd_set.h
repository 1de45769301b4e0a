#ifndef EXITWATCH_LINUX_SYSTEM_PIDFD_SET_H_
#define EXITWATCH_LINUX_SYSTEM_PIDFD_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// Pidfds that are waited for together: each becomes ready when its process has died, and once more
// when it has been reaped. An epoll set of their own, edge-triggered: a level-triggered one would
// fire for as long as a zombie stands.
class PidfdSet {
 public:
  // A pidfd that may have something to tell: its process has to be looked at, since it may be from
  // before the descriptor was closed, and its number given to another.
  struct Ready {
    int32_t pid;
    int pidfd;
  };

  SystemError Open();
  void Close() { epoll_.Reset(); }

  // Readable while there is something to take.
  int fd() const { return epoll_.Get(); }

  // From any thread. A pidfd leaves the set when it is closed. False where the kernel has no room
  // for it.
  bool Add(int pidfd, int32_t pid);

  // Takes some of those that are ready; true where there may be more.
  bool Take(std::vector<Ready>& ready);

 private:
  UniqueFd epoll_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_PIDFD_SET_H_
