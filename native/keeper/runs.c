// One idea: the table of runs, and what becomes of each: it starts, it ends, nothing of it is left.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"
#include "shim.h"

enum {
  kUnknown = -1,
  kLookEveryMs = 200,
  kFirstKillWaitMs = 1,
  kMostKillWaitMs = 200,
  // A status is in a pidfd when the process was reaped, which takes its parent a moment.
  kReapingMs = 5000,
};

// linux/pidfd.h, since Linux 6.15.
typedef struct {
  uint64_t mask;
  uint64_t cgroupid;
  uint32_t numbers[11];
  int32_t exit_code;
} PidfdInfo;

static Run** runs;
static size_t count;
static size_t room;
static uint64_t last_serial;

Run* RunAdd(const char* id) {
  if (count == room) {
    room = room == 0 ? 16 : room * 2;
    runs = Need(realloc(runs, room * sizeof *runs));
  }
  Run* const run = Need(calloc(1, sizeof *run));
  run->id = Copy(id);
  run->serial = ++last_serial;
  run->status = kUnknown;
  run->go_fd = run->exec_fd = run->shim_fd = run->notify_fd = run->log_fd = -1;
  runs[count++] = run;
  return run;
}

static void CloseWaited(int* fd) {
  if (*fd >= 0) StopWaiting(*fd);
  CloseFd(fd);
}

void RunClosed(Run* run) {
  CloseWaited(&run->exec_fd);
  CloseWaited(&run->shim_fd);
  CloseWaited(&run->notify_fd);
}

void RunRemove(Run* run) {
  size_t at = 0;
  while (runs[at] != run) at++;
  count--;
  memmove(runs + at, runs + at + 1, (count - at) * sizeof *runs);
  RunClosed(run);
  CloseFd(&run->go_fd);
  CloseFd(&run->log_fd);
  free(run->id);
  free(run->cgroup);
  free(run->text);
  free(run->log_fifo);
  free(run->log_file);
  free(run->step);
  free(run);
}

Run* RunFind(const char* id) {
  for (size_t i = count; i-- > 0;) {
    if (strcmp(runs[i]->id, id) == 0) return runs[i];
  }
  return NULL;
}

Run* RunAfter(uint64_t serial) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (runs[middle]->serial > serial)
      high = middle;
    else
      low = middle + 1;
  }
  return low < count ? runs[low] : NULL;
}

size_t RunCount(void) { return count; }

bool RunIsAlive(const Run* run) { return run->state == kStarting || run->state == kRunning; }

bool RunsAlive(void) {
  for (size_t i = 0; i < count; i++) {
    if (RunIsAlive(runs[i]) || runs[i]->has_left || runs[i]->log_pid != 0) return true;
  }
  return false;
}

void RunDescribe(Buffer* out, const Run* run) {
  static const char* const kStates[] = {"starting", "running", "ended", "failed"};
  MessageText(out, "run", run->id);
  MessageText(out, "state", kStates[run->state]);
  MessageNumber(out, "startedMs", run->started_ms);
  if (run->pid != 0) {
    MessageNumber(out, "pid", run->pid);
    MessageNumber(out, "startTicks", run->start_ticks);
  }
  if (run->cgroup != NULL) MessageText(out, "cgroup", run->cgroup);
  if (run->shim != 0) MessageNumber(out, "shim", run->shim);
  if (!run->is_ours && RunIsAlive(run)) MessageText(out, "lost", "1");
  if (run->has_left) MessageText(out, "left", "1");
  if (run->is_ready) MessageText(out, "ready", "1");
  if (run->is_stopping) MessageText(out, "stopping", "1");
  if (run->text != NULL) MessageText(out, "text", run->text);
  if (run->alive_boot_ms != 0) MessageNumber(out, "aliveMs", BootMs() - run->alive_boot_ms);
  if (RunIsAlive(run)) {
    MessageNumber(out, "livesMs", BootMs() - run->started_boot_ms);
    return;
  }
  if (run->ended_ms != 0) MessageNumber(out, "endedMs", run->ended_ms);
  if (!run->is_stored) MessageText(out, "unstored", "1");
  if (run->state == kFailed) {
    MessageNumber(out, "errno", run->error);
    MessageText(out, "step", run->step);
  } else if (run->status != kUnknown) {
    MessageNumber(out, "status", run->status);
    MessageNumber(out, "livedMs", run->lived_ms);
    MessageNumber(out, "peakKib", run->peak_kib);
    MessageNumber(out, "userUs", run->user_us);
    MessageNumber(out, "systemUs", run->system_us);
  }
}

// ---- ends

// Written at once, and told after all that ended at the same time were made durable together.
static Run** ended;
static size_t ended_count;

static void Ended(Run* run) {
  run->is_end_due = false;
  run->is_stored = JournalEnded(run) == 0;
  ended = Need(realloc(ended, (ended_count + 1) * sizeof *ended));
  ended[ended_count++] = run;
}

static void NothingIsLeft(Run* run) {
  run->has_left = false;
  run->is_killing = false;
  if (run->cgroup != NULL) CgroupRemove(run->cgroup);
  RunClosed(run);
}

void RunsTellEnded(void) {
  if (ended_count == 0) return;
  const bool is_synced = JournalSync() == 0;
  Run** const all = ended;
  const size_t number = ended_count;
  ended = NULL;
  ended_count = 0;
  for (size_t i = 0; i < number; i++) {
    Run* const run = all[i];
    run->is_stored &= is_synced;
    // Most leave nothing behind: then this says both.
    if (run->has_left && TreeIsEmpty(run)) NothingIsLeft(run);
    if (run->start_client != 0) AnswerStart(run);
    TellAll("ended", run);
  }
  free(all);
  JournalCompactIfDue();
}

static void Fail(Run* run, int error, const char* step) {
  run->state = kFailed;
  run->error = error;
  free(run->step);
  run->step = Copy(step);
  run->ended_ms = WallMs();
  run->is_end_due = IsAlive(run->shim, run->shim_ticks);
  if (!run->is_end_due) Ended(run);
}

static void Executed(Run* run) {
  run->state = kRunning;
  if (run->start_client != 0) AnswerStart(run);
  TellAll("started", run);
}

static void MainEnded(Run* run, int status, int64_t at, int64_t lived, const Usage* usage) {
  RunReadExec(run);
  if (!RunIsAlive(run)) return;
  if (run->state == kStarting) Executed(run);
  run->state = kEnded;
  run->status = status;
  run->ended_ms = at;
  run->lived_ms = lived;
  if (usage != NULL) {
    run->peak_kib = usage->peak_kib;
    run->user_us = usage->user_us;
    run->system_us = usage->system_us;
  }
  Ended(run);
}

// Somebody killed it, or its keeper was dead and could not be told why it failed.
static void MainEndedEarly(Run* run) {
  RunReadExec(run);
  if (!RunIsAlive(run)) return;
  CloseWaited(&run->exec_fd);
  Fail(run, ECANCELED, "killed");
}

static void LookWhatIsLeft(Run* run) {
  if (!run->has_left || RunIsAlive(run) || !TreeIsEmpty(run)) return;
  NothingIsLeft(run);
  TellAll("empty", run);
}

// An exec closes its pipe, and so does a death: of a zombie the kernel still knows which it was. If
// it was reaped already, its shim tells.
static void LookIfExecuted(Run* run) {
  if (run->state != kStarting || run->exec_fd >= 0 || run->pid == 0) return;
  if (ExecOf(run->pid, run->start_ticks) == kAfterExec) Executed(run);
}

void RunReadExec(Run* run) {
  if (run->exec_fd < 0) return;
  StartFailure failure;
  const ssize_t size = read(run->exec_fd, &failure, sizeof failure);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  CloseWaited(&run->exec_fd);
  if (size == sizeof failure) {
    failure.step[sizeof failure.step - 1] = '\0';
    return Fail(run, failure.error, failure.step);
  }
  if (run->shim != 0) RunReadShim(run);
  LookIfExecuted(run);
}

static void ReadPidfd(Run* run) {
  struct pollfd readable = {.fd = run->shim_fd, .events = POLLIN};
  if (poll(&readable, 1, 0) <= 0) return;
  PidfdInfo info = {.mask = 1 << 3};
  // PIDFD_GET_INFO with PIDFD_INFO_EXIT.
  const bool has_status =
      ioctl(run->shim_fd, _IOWR(0xFF, 11, PidfdInfo), &info) == 0 && (info.mask & 1 << 3) != 0;
  const int64_t now = BootMs();
  if (!has_status) {
    // It is a zombie, or the kernel cannot tell.
    StopWaiting(run->shim_fd);
    if (run->lived_ms == 0) run->lived_ms = now;
    if (now - run->lived_ms < kReapingMs) return;
  }
  CloseWaited(&run->shim_fd);
  MainEnded(run, has_status ? info.exit_code : kUnknown, WallMs(), now - run->started_boot_ms,
            NULL);
}

static void TakeReport(Run* run, const ShimReport* report) {
  const bool is_new = run->pid != report->pid;
  run->pid = report->pid;
  if (report->kind == kBegun) {
    if (!is_new) return;  // it was in the journal of the keeper before
    run->start_ticks = report->ticks;
    JournalStarted(run);
    return LookIfExecuted(run);
  }
  if (report->kind == kEndedBeforeExec) return MainEndedEarly(run);
  MainEnded(run, report->status, report->ended_ms, report->lived_ms, &report->usage);
}

// What a shim reports stays in its pipe until the journal has it: a keeper that is killed in
// between takes nothing along.
static ssize_t Peek(int pipe, ShimReport* report) {
  static int copy[2] = {-1, -1};
  if (copy[0] < 0 && pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0) return -1;
  const ssize_t size = tee(pipe, copy[1], sizeof *report, SPLICE_F_NONBLOCK);
  return size <= 0 ? size : read(copy[0], report, (size_t)size);
}

void RunReadShim(Run* run) {
  if (run->shim_fd >= 0 && run->shim == 0) ReadPidfd(run);
  ShimReport report;
  while (run->shim_fd >= 0 && run->shim != 0) {
    const int pipe = run->shim_fd;
    const ssize_t size = Peek(pipe, &report);
    if (size == sizeof report) {
      TakeReport(run, &report);
      if (read(pipe, &report, sizeof report) != sizeof report) break;
    } else {
      if (size == 0) CloseWaited(&run->shim_fd);
      break;
    }
  }
}

static void MainEndedWithShim(Run* run) {
  if (run->pid == 0 ||
      (run->state == kStarting && ExecOf(run->pid, run->start_ticks) == kBeforeExec)) {
    run->is_killing = true;  // what it has forked, and did not live to report
    return MainEndedEarly(run);
  }
  Death death = {.status = kUnknown};
  PeekDeath(P_PID, run->pid, WNOHANG, &death);
  MainEnded(run, death.status, WallMs(), BootMs() - run->started_boot_ms, &death.usage);
}

static void ShimEnded(Run* run, bool was_killed) {
  run->has_strays = was_killed;
  run->shim_ticks = kGoneTicks;  // its pid may be another's now
  RunReadShim(run);
  RunReadExec(run);
  CloseWaited(&run->shim_fd);
  ShimReport report;
  if (RunIsAlive(run) && ShimTake(run->id, &report) == 0) TakeReport(run, &report);
  // Somebody killed it: then the run is our child now, or an earlier keeper's loss.
  if (RunIsAlive(run) && !MainIsAlive(run)) MainEndedWithShim(run);
  if (run->is_end_due) Ended(run);
}

static void ChildEnded(const Death* death, bool is_early) {
  const pid_t pid = death->pid;
  const int status = death->status;
  if (pid == keeper.main_pid) {
    keeper.main_pid = 0;
    keeper.main_status = status;
    if (IsGuard())
      GuardMainEnded(status);
    else
      keeper.is_leaving = true;
    return;
  }
  for (size_t i = 0; i < count; i++) {
    Run* const run = runs[i];
    if (pid == run->log_pid) {
      LogEnded(run, WIFEXITED(status) && WEXITSTATUS(status) == 0);
      return;
    }
    if (run->is_ours && IsThat(pid, run->shim, run->shim_ticks)) {
      ShimEnded(run, !WIFEXITED(status));
      return;
    }
    if (RunIsAlive(run) && IsThat(pid, run->pid, run->start_ticks)) {
      if (run->cgroup != NULL && !TreeHas(run, pid)) run->has_strays = true;
      if (is_early) return MainEndedEarly(run);
      MainEnded(run, status, WallMs(), BootMs() - run->started_boot_ms, &death->usage);
      return;
    }
  }
}

// Of a zombie, before it is reaped.
static Exec LookAtLast(pid_t pid) {
  for (size_t i = 0; i < count; i++) {
    if (runs[i]->pid == pid && runs[i]->state == kStarting && runs[i]->start_ticks != 0)
      return ExecOf(pid, runs[i]->start_ticks);
  }
  return kAfterExec;
}

void RunsReap(void) {
  for (Death death; PeekDeath(P_ALL, 0, WNOHANG, &death);) {
    const Exec exec = LookAtLast(death.pid);
    if (exec == kUnseen)
      return;  // without a descriptor, for example: RunsTick() has us called again
    ChildEnded(&death, exec == kBeforeExec);
    Reap(death.pid);
  }
}

// ---- what is due

static int Sooner(int wait, int64_t at, int64_t now) {
  const int64_t left = at <= now ? 0 : at - now;
  return wait < 0 || left < wait ? (int)left : wait;
}

static void KillAgain(Run* run, int64_t now) {
  TreeKill(run);
  run->kill_wait_ms = run->kill_wait_ms == 0 ? kFirstKillWaitMs : run->kill_wait_ms * 2;
  if (run->kill_wait_ms > kMostKillWaitMs) run->kill_wait_ms = kMostKillWaitMs;
  run->kill_next_boot_ms = now + run->kill_wait_ms;
}

static void ReachShim(Run* run);

static void LookAtLost(Run* run) {
  if (run->shim != 0 && run->shim_fd < 0) ReachShim(run);
  RunReadShim(run);
  LookIfExecuted(run);
  if (run->shim != 0 ? IsAlive(run->shim, run->shim_ticks) : MainIsAlive(run)) return;
  if (run->shim != 0)
    ShimEnded(run, false);
  else if (run->shim_fd < 0)
    MainEnded(run, kUnknown, WallMs(), 0, NULL);
}

// What it has said of itself goes with it.
static bool IsOver(const Run* run) {
  return !RunIsAlive(run) && !run->is_end_due && !run->has_left && run->start_client == 0 &&
         run->exec_fd < 0 && run->shim_fd < 0 && run->notify_fd < 0 && run->log_fd < 0 &&
         run->log_pid == 0;
}

static void PutOverAside(void) {
  if (ended_count > 0) return;  // they are still to be told
  for (size_t i = count; i-- > 0;) {
    if (IsOver(runs[i]) && JournalPast(runs[i]) != 0) return;
  }
  JournalCompactIfDue();
}

int RunsTick(void) {
  const int64_t now = BootMs();
  int wait = -1;
  for (size_t i = 0; i < count; i++) {
    Run* const run = runs[i];
    if (run->is_end_due) {
      if (!IsAlive(run->shim, run->shim_ticks)) Ended(run);
      wait = Sooner(wait, now + kLookEveryMs, now);
    }
    if (!RunIsAlive(run) || (run->is_ours && (run->state != kStarting || run->exec_fd >= 0)))
      continue;
    if (run->is_ours)
      LookIfExecuted(run);
    else
      LookAtLost(run);
    wait = Sooner(wait, now + kLookEveryMs, now);
  }
  RunsTellEnded();
  for (size_t i = 0; i < count; i++) {
    Run* const run = runs[i];
    if (run->is_killing && run->has_left) {
      if (run->kill_next_boot_ms <= now) KillAgain(run, now);
      wait = Sooner(wait, run->kill_next_boot_ms, now);
    }
    if (run->has_left && !RunIsAlive(run)) {
      LookWhatIsLeft(run);
      if (run->has_left) wait = Sooner(wait, now + (run->is_killing ? 1 : kLookEveryMs), now);
    }
    if (run->log_pid == 0 && run->log_fd >= 0) {
      if (run->log_next_boot_ms <= now) LogSpawn(run, -1);
      wait = Sooner(wait, run->log_next_boot_ms, now);
    }
  }
  PutOverAside();
  return wait;
}

// ---- paused

// On disk before anything stops: the next keeper must know what it has to undo.
int RunPause(Run* run, bool is_paused, bool is_held) {
  const bool was_paused = run->is_paused, was_held = run->is_held;
  const bool is_changed = is_paused != was_paused || is_held != was_held;
  run->is_paused = is_paused;
  run->is_held = is_held;
  const bool is_on = is_paused || is_held;
  const int unwritten = is_changed ? JournalPaused(run) : 0;
  if (unwritten != 0 && is_on) {
    run->is_paused = was_paused;
    run->is_held = was_held;
    return unwritten;
  }
  return TreeFreeze(run, is_on);
}

// ---- after an earlier keeper

// Its descriptors are in place when it has its name.
static void ReachShim(Run* run) {
  char path[40], name[16];
  snprintf(path, sizeof path, "/proc/%d/comm", run->shim);
  if (ReadFile(path, name, sizeof name) != 0 || strcmp(name, kShimName "\n") != 0) return;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", run->shim, kShimReadFd);
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  // Looked at last: then it was the shim that was asked before.
  if (TicksOf(run->shim) != run->shim_ticks) {
    close(fd);
    return;
  }
  run->shim_fd = fd;
  WaitFor(fd, kShimFd, run->serial);
  RunReadShim(run);
}

static void Adopt(Run* run) {
  if (run->shim != 0) {
    ReachShim(run);
  } else if (run->pid != 0) {
    run->shim_fd = (int)syscall(SYS_pidfd_open, run->pid, 0);
    // It may be hidden from us, but not a stranger.
    if (TicksOf(run->pid) != run->start_ticks && !MainIsAlive(run)) CloseFd(&run->shim_fd);
    if (run->shim_fd >= 0) WaitFor(run->shim_fd, kShimFd, run->serial);
  }
}

void RunsTakeStock(void) {
  for (size_t i = 0; i < count; i++) {
    Run* const run = runs[i];
    if (run->pid == 0 && run->shim == 0 && run->state == kStarting) {
      // The keeper died before Go(): nothing was executed, and who asked for it asks again.
      if (run->cgroup != NULL) CgroupRemove(run->cgroup);
      JournalForgotten(run->id);
      RunRemove(run);
      i--;
      continue;
    }
    if (run->pid == 0 && run->shim == 0 && RunIsAlive(run)) {
      // Of another boot.
      MainEnded(run, kUnknown, 0, 0, NULL);
      run->has_left = run->cgroup != NULL && !TreeIsEmpty(run);
    } else if (run->pid == 0 && run->shim == 0) {
      run->has_left = false;
    } else if (RunIsAlive(run)) {
      run->state = kStarting;
      Adopt(run);
      LookIfExecuted(run);
    } else {
      run->has_left = run->state == kEnded && !TreeIsEmpty(run);
    }
    // Also of one that has ended: what it left behind may write.
    if (run->log_fifo != NULL && LogOpen(run) == 0) LogSpawn(run, -1);
    if (run->is_held) RunPause(run, run->is_paused, false);
  }
}
