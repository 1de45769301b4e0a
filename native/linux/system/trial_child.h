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

// A child that the signal trace is tried with. It blocks all signals, waits until it was sent those
// below, and exits with 0. It shares our memory, so that it costs little to make; it has a name of
// its own, tells nobody of its end (no SIGCHLD), and is not reaped by a wait(-1) of the host
// program's (only by one with __WALL or __WCLONE). It does not outlive us by more than twice
// kMostSeconds.
class TrialChild {
 public:
  static constexpr const char* kName = kTrialChildName;
  static constexpr int kMostSeconds = 5;

  // What it is sent by a thread of ours, in this order; the last one by the kernel, since that
  // thread, its parent, ends.
  static constexpr int kKill = SIGTERM;         // kill(2)
  static constexpr int kThreadKill = SIGINT;    // tgkill(2)
  static constexpr int kQueue = SIGUSR1;        // rt_sigqueueinfo(2)
  static constexpr int kForgedTimer = SIGUSR2;  // the same, in a timer's name
  static constexpr int kFile = SIGHUP;          // F_SETSIG of fcntl(2)
  static constexpr int kParentDeath = SIGQUIT;  // PR_SET_PDEATHSIG of prctl(2)
  // And what it has the kernel send.
  static constexpr int kBrokenPipe = SIGPIPE;
  static constexpr int kIntervalTimer = SIGALRM;  // setitimer(2)
  static constexpr int kPosixTimer = SIGVTALRM;   // timer_create(2)

  // What comes with kQueue.
  static constexpr uint64_t kQueuedValue = 0x5eed'0001'5eed'0001;

  struct Result {
    GroupIdentity identity;
    int32_t sender_thread = 0;
    // What could not be done, so that there was no trial.
    SystemError error;
  };

  // Makes one, has it sent everything, waits for its end and reaps it. `on_made` is called before
  // it is sent anything, and `on_ended` before its pid can be another's, where the other was
  // called.
  static Result Run(const KernelClock& clock, const std::function<void(int32_t pid)>& on_made,
                    const std::function<void(int32_t pid)>& on_ended);
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_TRIAL_CHILD_H_
