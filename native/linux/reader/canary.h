#ifndef EXITWATCH_LINUX_READER_CANARY_H_
#define EXITWATCH_LINUX_READER_CANARY_H_

#include <cstdint>
#include <mutex>

#include "linux/system/system_error.h"

namespace exitwatch {

// Short-lived threads of ours, whose exits must come back through every stream of this process:
// proof that events still arrive. One canary serves all readers that share it.
class Canary {
 public:
  // A thread that has exited, or is about to.
  struct Flight {
    int32_t thread = 0;
    uint64_t time_ns = 0;  // on the clock of the caller of Fly(); 0: none
  };

  // Starts a flight, unless one has begun after `since_ns`: that one serves too.
  SystemError Fly(uint64_t since_ns, uint64_t now_ns, Flight* flight);

  // Whether its thread has yet to exit.
  static bool IsFlying(const Flight& flight);

 private:
  std::mutex mutex_;
  Flight latest_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_CANARY_H_
