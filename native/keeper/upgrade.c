// One idea: becomes a newer binary by execve(2), which keeps the pid, the children and the open
// files. What only memory knows goes along in a memfd; everything else is in the journal.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"
#include "shim.h"

enum { kFailureFd = 3, kCheckMs = 5000 };

static void Inherit(int fd, bool on) {
  if (fd >= 0) fcntl(fd, F_SETFD, on ? 0 : FD_CLOEXEC);
}

static void InheritAll(bool on) {
  Inherit(keeper.lock, on);
  Inherit(keeper.journal, on);
  Inherit(keeper.listening, on);
  Inherit(keeper.before, on);
  for (const Run* run = RunAfter(0); run != NULL; run = RunAfter(run->serial)) {
    Inherit(run->exec_fd, on);
    Inherit(run->shim_fd, on);
    Inherit(run->notify_fd, on);
    Inherit(run->log_fd, on);
  }
}

// A binary that cannot take over must not get the chance: nobody could go back. Neither must a disk
// that does not answer hold us up: a child looks, and has nothing of ours.
static int Check(const char* path) {
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) < 0) return errno;
  const pid_t pid = fork();
  if (pid == 0) {
    dup3(failure[1], kFailureFd, O_CLOEXEC);
    CloseFrom(kFailureFd + 1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl(path, path, "check", IsGuard() ? "guard" : NULL, NULL);
    const int error = errno;
    _exit(write(kFailureFd, &error, sizeof error) < 0 ? 126 : 127);
  }
  int error = pid < 0 ? errno : 0;
  close(failure[1]);
  int status = -1;
  for (int waited = 0; error == 0 && waitpid(pid, &status, WNOHANG) != pid; waited++) {
    if (waited == kCheckMs) {
      kill(pid, SIGKILL);  // it is reaped as all that ends
      error = ETIMEDOUT;
    }
    usleep(1000);
  }
  if (error == 0 && read(failure[0], &error, sizeof error) <= 0 && status != 0) error = ENOEXEC;
  close(failure[0]);
  return error;
}

static void WriteRun(FILE* state, const Run* run) {
  fprintf(state, "run %s %d %d %d %d %d %d %d %d %d %d %d %lld %s\n", run->id, run->exec_fd,
          run->shim_fd, run->notify_fd, run->log_fd, run->log_pid, run->state, run->is_ours,
          run->has_left, run->is_ready, run->is_stopping, run->is_killing,
          (long long)run->alive_boot_ms, run->text == NULL ? "" : run->text);
  // Each of its own: a binary that does not know it ignores it.
  if (run->has_strays) fprintf(state, "lost-shim %s\n", run->id);
  if (run->is_end_due) fprintf(state, "end-due %s\n", run->id);
}

static void ExecResume(const char* path, char* number) {
  char** const command = GuardCommand();
  size_t count = 0;
  while (command != NULL && command[count] != NULL) count++;
  char** const arguments = Need(calloc(count + 4, sizeof *arguments));
  arguments[0] = Copy(path);
  arguments[1] = Copy("resume");
  arguments[2] = number;
  for (size_t i = 0; i < count; i++) arguments[i + 3] = command[i];
  execv(path, arguments);
  free(arguments[0]);
  free(arguments[1]);
  free(arguments);
}

int Upgrade(const char* path) {
  RunsTellEnded();
  int error = Check(path);
  if (error == 0) error = JournalCompact();
  if (error != 0) return error;
  const int memory = memfd_create("exitwatch-keeper", 0);
  FILE* const state = memory < 0 ? NULL : fdopen(dup(memory), "w");
  if (state == NULL) return errno;
  fprintf(state, "keeper %d %d %d %d\n", keeper.lock, keeper.journal, keeper.listening,
          keeper.main_pid);
  for (const Run* run = RunAfter(0); run != NULL; run = RunAfter(run->serial)) WriteRun(state, run);
  // A binary that does not know it has no use for it.
  if (IsGuard())
    fprintf(state, "guard %d %u %llu\n", keeper.before, (unsigned)keeper.mask,
            (unsigned long long)GuardSignals());
  fclose(state);
  InheritAll(true);
  setrlimit(RLIMIT_NOFILE, &inherited_files);
  char number[16];
  snprintf(number, sizeof number, "%d", memory);
  ExecResume(path, number);
  error = errno;
  InheritAll(false);
  close(memory);
  return error;
}

static void ReadRun(const char* line) {
  char id[kMostIdBytes + 1];
  if (sscanf(line, "lost-shim %100s", id) == 1) {
    Run* const run = RunFind(id);
    if (run != NULL) run->has_strays = true;
    return;
  }
  if (sscanf(line, "end-due %100s", id) == 1) {
    Run* const run = RunFind(id);
    if (run != NULL) run->is_end_due = true;
    return;
  }
  int exec_fd, shim_fd, notify_fd, log_fd, log_pid, state, ours, left, ready, stopping, killing;
  long long alive;
  int text = 0;
  if (sscanf(line, "run %100s %d %d %d %d %d %d %d %d %d %d %d %lld %n", id, &exec_fd, &shim_fd,
             &notify_fd, &log_fd, &log_pid, &state, &ours, &left, &ready, &stopping, &killing,
             &alive, &text) != 13) {
    return;
  }
  Run* const run = RunFind(id);
  if (run == NULL) return;
  run->exec_fd = exec_fd;
  run->shim_fd = shim_fd;
  run->notify_fd = notify_fd;
  run->log_fd = log_fd;
  run->log_pid = log_pid;
  run->state = (uint8_t)state;
  run->is_ours = ours != 0;
  run->has_left = left != 0;
  run->is_ready = ready != 0;
  run->is_stopping = stopping != 0;
  run->is_killing = killing != 0;
  run->alive_boot_ms = alive;
  if (text > 0 && line[text] != '\0') run->text = Copy(line + text);
}

static void Wait(const Run* run) {
  if (run->exec_fd >= 0) WaitFor(run->exec_fd, kExecFd, run->serial);
  if (run->shim_fd >= 0) WaitFor(run->shim_fd, kShimFd, run->serial);
  if (run->notify_fd >= 0) WaitFor(run->notify_fd, kNotifyFd, run->serial);
}

void UpgradeResume(int memory) {
  lseek(memory, 0, SEEK_SET);
  FILE* const state = fdopen(memory, "r");
  int journal = -1;
  if (state == NULL || fscanf(state, "keeper %d %d %d %d\n", &keeper.lock, &journal,
                              &keeper.listening, &keeper.main_pid) != 4)
    Die("the state of the keeper before");
  close(journal);
  if ((errno = JournalOpen()) != 0) Die("runs");
  char* line = NULL;
  size_t room = 0;
  for (ssize_t length; (length = getline(&line, &room, state)) > 0;) {
    if (line[length - 1] == '\n') line[length - 1] = '\0';
    ReadRun(line);
    unsigned mask;
    unsigned long long signals;
    if (sscanf(line, "guard %d %u %llu", &keeper.before, &mask, &signals) == 3) {
      keeper.mask = (mode_t)mask;
      keeper.taken_over = signals;
    }
  }
  free(line);
  fclose(state);
  InheritAll(false);
  for (const Run* run = RunAfter(0); run != NULL; run = RunAfter(run->serial)) Wait(run);
}
