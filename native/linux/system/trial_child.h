#ifndef EXITWATCH_LINUX_SYSTEM_TRIAL_CHILD_H_
#define EXITWATCH_LINUX_SYSTEM_TRIAL_CHILD_H_

#include <csignal>
#include <cstdint>
#include <functional>

#include "abi/names.h"
#include "core/groups/group_identity.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// The child for the trial of the signal trace. It blocks all signals, waits until it has got those
// below, and exits with 0. It shares our memory, so that it is cheap to create. It has its own
// name, sends no SIGCHLD, and a wait(-1) of the host program does not reap it (only one with __WALL
// or __WCLONE does). It outlives us by at most twice kMostSeconds.
class TrialChild {
 public:
  static constexpr const char* kName = kTrialChildName;
  static constexpr int kMostSeconds = 5;

  // The signals that a thread of ours sends to the child, in this order. The kernel sends the last
  // one when that thread, the child's parent, exits.
  static constexpr int kKill = SIGTERM;         // kill(2)
  static constexpr int kThreadKill = SIGINT;    // tgkill(2)
  static constexpr int kQueue = SIGUSR1;        // rt_sigqueueinfo(2)
  static constexpr int kForgedTimer = SIGUSR2;  // the same, claiming to be a timer
  static constexpr int kFile = SIGHUP;          // F_SETSIG of fcntl(2)
  static constexpr int kParentDeath = SIGQUIT;  // PR_SET_PDEATHSIG of prctl(2)
  // The signals that the child makes the kernel send.
  static constexpr int kBrokenPipe = SIGPIPE;
  static constexpr int kIntervalTimer = SIGALRM;  // setitimer(2)
  static constexpr int kPosixTimer = SIGVTALRM;   // timer_create(2)

  // The value that comes with kQueue.
  static constexpr uint64_t kQueuedValue = 0x5eed'0001'5eed'0001;

  struct Result {
    GroupIdentity identity;
    int32_t sender_thread = 0;
    // Why there was no trial.
    SystemError error;
  };

  // Creates the child, sends it everything, waits for its exit and reaps it. Calls `on_made` before
  // sending anything. If it did, it calls `on_ended` before another process can get the pid.
  static Result Run(const KernelClock& clock, const std::function<void(int32_t pid)>& on_made,
                    const std::function<void(int32_t pid)>& on_ended);
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_TRIAL_CHILD_H_
