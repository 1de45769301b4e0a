#include "linux/stat_code_trial.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "linux/proc_files.h"
#include "linux/unique_fd.h"

namespace exitwatch {

namespace {

constexpr int kFirstCode = 1;
constexpr int kGroupCode = 2;
constexpr int kFailedCode = 3;

constexpr int kTries = 20;
constexpr timespec kTryFor = {0, 100'000'000};

// What the two threads of the trial share.
struct Scene {
  int first_is_there;  // set to 0 by the kernel when the first thread ends, and its code is known
  alignas(16) char stack[16 * 1024];
};

// A sanitizer would not know of the second thread.
#define EXITWATCH_BARE __attribute__((no_sanitize("address", "thread", "undefined")))

EXITWATCH_BARE int EndGroup(void* argument) {
  auto* scene = static_cast<Scene*>(argument);
  for (int i = 0; i < kTries; i++) {
    if (__atomic_load_n(&scene->first_is_there, __ATOMIC_ACQUIRE) == 0) {
      syscall(SYS_exit_group, kGroupCode);
    }
    syscall(SYS_futex, &scene->first_is_there, FUTEX_WAIT, 1, &kTryFor, nullptr, 0);
  }
  syscall(SYS_exit_group, kFailedCode);
  return 0;
}

// The first thread leaves, and then another one ends the process.
EXITWATCH_BARE void EndInTurn() {
  Scene scene;
  scene.first_is_there = 1;
  syscall(SYS_set_tid_address, &scene.first_is_there);
  constexpr int kThread =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  if (clone(EndGroup, scene.stack + sizeof(scene.stack), kThread, &scene) < 0) {
    syscall(SYS_exit_group, kFailedCode);
  }
  syscall(SYS_exit, kFirstCode);
}

// Nothing where there is no process to be had.
std::optional<bool> Try() {
  // Without a signal at its end: that would be for the host program.
  const long child = syscall(SYS_clone, 0, 0, 0, 0, 0);
  if (child == 0) EndInTurn();
  if (child < 0) return {};
  const auto pid = static_cast<pid_t>(child);
  siginfo_t info;
  RetryOnEintr(
      [&] { return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | __WALL); });
  ProcStat stat;
  const bool has_stat = ReadProcStat(pid, &stat);
  int status = 0;
  RetryOnEintr([&] { return waitpid(pid, &status, __WALL); });
  return has_stat && status == kGroupCode << 8 && stat.exit_code == status;
}

}  // namespace

bool StatCodeIsStatus() {
  enum Answer : int { kNotAsked, kYes, kNo };
  static std::atomic<Answer> answer{kNotAsked};
  if (answer == kNotAsked) {
    const std::optional<bool> is_status = Try();
    if (!is_status) return false;
    answer = *is_status ? kYes : kNo;
  }
  return answer == kYes;
}

}  // namespace exitwatch
