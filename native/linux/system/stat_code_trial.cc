#include "linux/system/stat_code_trial.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>

#include "linux/system/kernel_clock.h"
#include "linux/system/own_children.h"
#include "linux/system/pidfd.h"
#include "linux/system/proc_files.h"
#include "linux/system/thread.h"
#include "linux/system/trial_child.h"
#include "linux/system/unsanitized.h"

namespace exitwatch {

namespace {

// 0, so that nobody else takes the child for a failure.
constexpr int kGroupCode = 0;
constexpr int kFirstCode = 1;
constexpr int kFailedCode = 2;

constexpr int kTries = 20;

// What the trial's process and its second thread use. Their data is above their stacks, not on
// them, so that the compiler has nothing to guard there.
struct Scene {
  alignas(16) char first_stack[16 * 1024];
  alignas(16) char second_stack[16 * 1024];
  timespec patience = {0, 100'000'000};
  int may_begin = 0;
  // The kernel sets this to 0 when the first thread exits. The thread's code is then known.
  int first_is_there = 1;
};

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer's state of threads does not survive another process in its memory.
constexpr int kSharing = 0;
#else
constexpr int kSharing = CLONE_VM | CLONE_FILES;
#endif

EXITWATCH_UNSANITIZED int EndGroup(void* argument) {
  auto* scene = static_cast<Scene*>(argument);
  for (int i = 0; i < kTries; i++) {
    if (__atomic_load_n(&scene->first_is_there, __ATOMIC_ACQUIRE) == 0) {
      syscall(SYS_exit_group, kGroupCode);
    }
    syscall(SYS_futex, &scene->first_is_there, FUTEX_WAIT, 1, &scene->patience, nullptr, 0);
  }
  syscall(SYS_exit_group, kFailedCode);
  return 0;
}

// The first thread exits, and then another one ends the process.
EXITWATCH_UNSANITIZED int EndInTurn(void* argument) {
  auto* scene = static_cast<Scene*>(argument);
  constexpr int kThread =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  syscall(SYS_prctl, PR_SET_NAME, TrialChild::kName, 0, 0, 0);
  syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  for (int i = 0; i < kTries; i++) {
    if (__atomic_load_n(&scene->may_begin, __ATOMIC_ACQUIRE) != 0) break;
    syscall(SYS_futex, &scene->may_begin, FUTEX_WAIT, 0, &scene->patience, nullptr, 0);
  }
  syscall(SYS_set_tid_address, &scene->first_is_there);
  if (clone(EndGroup, scene->second_stack + sizeof(scene->second_stack), kThread, scene) >= 0) {
    syscall(SYS_exit, kFirstCode);
  }
  syscall(SYS_exit_group, kFailedCode);
  return 0;
}

// Nothing if no process can be created.
std::optional<bool> Try() {
  const auto scene = std::make_unique<Scene>();
  if (kSharing == 0) scene->may_begin = 1;
  // No exit signal: it would reach the host program. The child has the errno of this thread, which
  // waits for it meanwhile.
  const int pid =
      clone(EndInTurn, scene->first_stack + sizeof(scene->first_stack), kSharing, scene.get());
  if (pid < 0) return {};
  GroupIdentity identity;
  identity.pid = pid;
  if (const UniqueFd pidfd = OpenPidfd(pid)) identity.inode = PidfdInode(pidfd.Get());
  ProcStat stat;
  if (ReadProcStat(pid, &stat)) identity.start_ticks = stat.start_ticks;
  OwnChildren::Add(identity);
  __atomic_store_n(&scene->may_begin, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &scene->may_begin, FUTEX_WAKE, 1, nullptr, nullptr, 0);

  siginfo_t info;
  RetryOnEintr(
      [&] { return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | __WALL); });
  const bool has_stat = ReadProcStat(pid, &stat);
  int status = -1;
  RetryOnEintr([&] { return waitpid(pid, &status, __WALL); });
  OwnChildren::End(pid, KernelClock().Now());
  if (!has_stat || !stat.IsZombie() || stat.threads != 1 || status != kGroupCode << 8) return {};
  return stat.exit_code == status;
}

}  // namespace

bool StatCodeIsStatus() {
  static std::mutex mutex;
  static std::optional<bool> answer;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!answer) {
    // Polling knows the child by its name, from its first moment on.
    Thread maker;
    maker.Start(TrialChild::kName, [] { answer = Try(); });
  }
  return answer.value_or(false);
}

}  // namespace exitwatch
