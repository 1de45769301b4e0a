#include "linux/system/trial_child.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "linux/system/memory_map.h"
#include "linux/system/own_children.h"
#include "linux/system/pidfd.h"
#include "linux/system/proc_files.h"
#include "linux/system/thread.h"
#include "linux/system/unsanitized.h"

namespace exitwatch {

namespace {

using Child = TrialChild;

constexpr uint64_t SetOf(int signal) { return uint64_t{1} << (signal - 1); }

constexpr uint64_t kTrialSignals =
    SetOf(Child::kKill) | SetOf(Child::kThreadKill) | SetOf(Child::kQueue) |
    SetOf(Child::kForgedTimer) | SetOf(Child::kFile) | SetOf(Child::kParentDeath) |
    SetOf(Child::kBrokenPipe) | SetOf(Child::kIntervalTimer) | SetOf(Child::kPosixTimer);

constexpr size_t kStackBytes = 64 * 1024;

// Waiting for the next signal ends early if somebody stops the child (SIGSTOP) and continues it, or
// sends it other signals.
constexpr int kMostTries = 100;

constexpr int kMsPerSecond = 1000;

// Lies below the child's stack, and holds everything whose address the child takes. A compiler that
// guards such data on a stack would keep state for that elsewhere.
struct Shared {
  uint32_t is_ready;
  uint32_t may_begin;
  uint32_t has_all;
  int broken_pipe;  // its reader is closed
  pollfd signals;   // signalfd(2): each reader gets its own
  signalfd_siginfo signal;
  timespec patience;
  itimerval interval;
  sigevent event;
  itimerspec expiry;
  int timer;
};

// Wakes the other of the two processes, which share memory.
EXITWATCH_UNSANITIZED void Set(uint32_t* word) {
  __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Returns at once if the word is set, and early if interrupted.
EXITWATCH_UNSANITIZED void Await(uint32_t* word, const timespec* patience) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, patience, nullptr, 0);
}

// The child has the registers of the thread that created it, and thus its errno, which is better
// left alone. See Run() for how long that exists.
EXITWATCH_UNSANITIZED int Suffer(void* argument) {
  auto* shared = static_cast<Shared*>(argument);
  syscall(SYS_prctl, PR_SET_NAME, Child::kName, 0, 0, 0);
  syscall(SYS_prctl, PR_SET_PDEATHSIG, Child::kParentDeath, 0, 0, 0);
  Set(&shared->is_ready);
  Await(&shared->may_begin, &shared->patience);
  if (shared->may_begin == 0) return 0;
  syscall(SYS_write, shared->broken_pipe, Child::kName, 1);
  syscall(SYS_setitimer, ITIMER_REAL, &shared->interval, nullptr);
  syscall(SYS_timer_create, CLOCK_MONOTONIC, &shared->event, &shared->timer);
  syscall(SYS_timer_settime, shared->timer, 0, &shared->expiry, nullptr);
  uint64_t left = kTrialSignals;
  // Not sigtimedwait(2), which unblocks the signals while it waits.
  for (int tries = 0; left != 0; tries++) {
    if (tries == kMostTries) return 0;
    if (syscall(SYS_ppoll, &shared->signals, 1, &shared->patience, nullptr, 0) == 0) return 0;
    const long size =
        syscall(SYS_read, shared->signals.fd, &shared->signal, sizeof(shared->signal));
    if (size == sizeof(shared->signal)) left &= ~SetOf(static_cast<int>(shared->signal.ssi_signo));
  }
  shared->has_all = 1;
  return 0;
}

SystemError Failed(const char* call) { return {Failure::kSystem, errno, call}; }

// Queues a siginfo with rt_sigqueueinfo(2).
bool Queue(int32_t pid, int signal, int code) {
  siginfo_t info = {};
  info.si_code = code;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = reinterpret_cast<void*>(Child::kQueuedValue);
  return syscall(SYS_rt_sigqueueinfo, pid, signal, &info) == 0;
}

// Makes the kernel send a signal for a write by this thread.
bool SendByFile(int32_t pid, int signal) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  // The reader is closed first: otherwise closing the writer would signal too.
  const UniqueFd writer(ends[1]);
  const UniqueFd reader(ends[0]);
  return fcntl(reader.Get(), F_SETOWN, pid) == 0 && fcntl(reader.Get(), F_SETSIG, signal) == 0 &&
         fcntl(reader.Get(), F_SETFL, O_NONBLOCK | O_ASYNC) == 0 && write(writer.Get(), "", 1) == 1;
}

SystemError Send(int32_t pid) {
  if (kill(pid, Child::kKill) != 0) return Failed("kill");
  if (syscall(SYS_tgkill, pid, pid, Child::kThreadKill) != 0) return Failed("tgkill");
  if (!Queue(pid, Child::kQueue, SI_QUEUE)) return Failed("rt_sigqueueinfo");
  if (!Queue(pid, Child::kForgedTimer, SI_TIMER)) return Failed("rt_sigqueueinfo");
  if (!SendByFile(pid, Child::kFile)) return Failed("fcntl");
  return {};
}

// For a child that did not get all signals: it exits as soon as it has them.
void SendAnything(int32_t pid) {
  for (int signal = 1; signal <= 64; signal++) {
    if ((kTrialSignals & SetOf(signal)) != 0) kill(pid, signal);
  }
}

Shared Instructions(int broken_pipe, int signals) {
  Shared shared = {};
  shared.broken_pipe = broken_pipe;
  shared.signals = {signals, POLLIN, 0};
  shared.patience.tv_sec = Child::kMostSeconds;
  shared.interval.it_value.tv_usec = 1;
  shared.event.sigev_notify = SIGEV_SIGNAL;
  shared.event.sigev_signo = Child::kPosixTimer;
  shared.expiry.it_value.tv_nsec = 1;
  return shared;
}

// Kills the child if somebody has stopped it (SIGSTOP), instead of waiting on. Requires a pidfd.
void AwaitEnd(int32_t pid, int pidfd) {
  if (pidfd < 0) return;
  pollfd ended = {pidfd, POLLIN, 0};
  const int patience_ms = 2 * TrialChild::kMostSeconds * kMsPerSecond;
  const int count = RetryOnEintr([&] { return poll(&ended, 1, patience_ms); });
  if (count == 0) kill(pid, SIGKILL);
}

}  // namespace

TrialChild::Result TrialChild::Run(const KernelClock& clock,
                                   const std::function<void(int32_t pid)>& on_made,
                                   const std::function<void(int32_t pid)>& on_ended) {
  Result result;
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer's state of threads does not survive another process in its memory.
  result.error = {Failure::kSystem, ENOSYS, "clone"};
  return result;
#endif
  MemoryMap memory;
  if (!memory.Map(-1, kStackBytes, PROT_READ | PROT_WRITE, 0, MAP_PRIVATE | MAP_ANONYMOUS)) {
    result.error = Failed("mmap");
    return result;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.error = Failed("pipe2");
    return result;
  }
  const UniqueFd broken_pipe(ends[1]);
  close(ends[0]);
  sigset_t all;
  sigfillset(&all);
  const UniqueFd signals(signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) {
    result.error = Failed("signalfd");
    return result;
  }
  const UniqueFd sent(eventfd(0, EFD_CLOEXEC));
  if (!sent) {
    result.error = Failed("eventfd");
    return result;
  }
  auto* shared = memory.At<Shared>(0);
  *shared = Instructions(broken_pipe.Get(), signals.Get());

  UniqueFd pidfd;
  const auto make_and_send = [&] {
    result.sender_thread = static_cast<int32_t>(syscall(SYS_gettid));
    void* stack = memory.At<char>(kStackBytes);
    const int pid = clone(Suffer, stack, CLONE_VM | CLONE_FILES, shared);
    if (pid < 0) {
      result.error = Failed("clone");
    } else {
      result.identity.pid = pid;
      pidfd = OpenPidfd(pid);
      // /proc may hide the child from us (hidepid, proc(5)).
      ProcStat stat;
      if (ReadProcStat(pid, &stat)) result.identity.start_ticks = stat.start_ticks;
      if (pidfd) result.identity.inode = PidfdInode(pidfd.Get());
      OwnChildren::Add(result.identity);
      on_made(pid);
      Await(&shared->is_ready, &shared->patience);
      Set(&shared->may_begin);
      if (!result.error) result.error = Send(pid);
      if (result.error) SendAnything(pid);
    }
    eventfd_write(sent.Get(), 1);
  };

  // The child uses the memory of this thread, which exists until the thread is joined: after the
  // child has exited. Polling knows the child by its name, from its first moment on.
  Thread sender;
  if (const int error = sender.Start(kName, make_and_send)) {
    result.error = {Failure::kSystem, error, "pthread_create"};
    return result;
  }
  eventfd_t value;
  RetryOnEintr([&] { return eventfd_read(sent.Get(), &value); });
  const int32_t pid = result.identity.pid;
  if (pid == 0) return result;

  AwaitEnd(pid, pidfd.Get());
  on_ended(pid);
  RetryOnEintr([&] { return waitpid(pid, nullptr, __WALL); });
  OwnChildren::End(pid, clock.Now());
  if (!result.error && __atomic_load_n(&shared->has_all, __ATOMIC_SEQ_CST) == 0) {
    result.error = {Failure::kSystem, ETIMEDOUT, "signalfd"};
  }
  return result;
}

}  // namespace exitwatch
