// One idea: as the first process of a container, keeps the supervisor alive. It may crash, and
// nothing else ends; the signals of the container are its own, and wait for the next one.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"

enum {
  kHealthyMs = 10000,
  kMostWaitMs = 10000,
  // How long a request to end waits for a supervisor, which a busy machine takes seconds to start:
  // a container has 10 s as a rule.
  kAnswerMs = 5000,
};

static char** command;  // NULL: nothing is guarded
static int64_t started_boot_ms;
static int64_t start_next_boot_ms;  // 0: no start is due
static int64_t answer_until_boot_ms;
static int wait_ms;
static bool was_taken;  // a supervisor has taken the signals
static bool is_ending;  // one has said what to end with
static int end_status = -1;
static uint64_t pending;  // signals that nobody has taken, a bit each
static uint64_t asked;    // those to end: whoever has taken them may die before it is done

static const uint64_t kToEnd =
    UINT64_C(1) << SIGTERM | UINT64_C(1) << SIGINT | UINT64_C(1) << SIGQUIT;

bool IsGuard(void) { return command != NULL; }

char** GuardCommand(void) { return command; }

static int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// In the folder and with the mask that we were started with.
void StartMain(char** arguments) {
  keeper.main_pid = fork();
  if (keeper.main_pid != 0) return;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  setrlimit(RLIMIT_NOFILE, &inherited_files);
  umask(keeper.mask);
  if (fchdir(keeper.before) == 0) execvp(arguments[0], arguments);
  fprintf(stderr, "exitwatch-keeper: %s: %s\n", arguments[0], strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

static void StartAgain(void) {
  start_next_boot_ms = 0;
  started_boot_ms = BootMs();
  StartMain(command);
  if (keeper.main_pid < 0) {
    keeper.main_pid = 0;
    start_next_boot_ms = BootMs() + 1000;
  }
}

void GuardBegin(char** arguments) {
  command = arguments;
  StartAgain();
}

void GuardResume(char** arguments, uint64_t signals) {
  command = arguments;
  was_taken = true;
  pending = signals;
  asked = signals & kToEnd;
  if (asked != 0) answer_until_boot_ms = BootMs() + kAnswerMs;
  started_boot_ms = BootMs();
  if (keeper.main_pid == 0) StartAgain();
}

void GuardMainEnded(int status) {
  if (is_ending || end_status >= 0) return;
  // One that has taken the request did not do it all; the time of one that nobody took goes on.
  if (asked != 0 && answer_until_boot_ms == 0) answer_until_boot_ms = BootMs() + kAnswerMs;
  if (!was_taken) {
    // It has never worked: what it said about that is all that there is to say.
    end_status = ExitCode(status);
    return;
  }
  const bool was_healthy = BootMs() - started_boot_ms >= kHealthyMs;
  wait_ms = was_healthy ? 0 : wait_ms == 0 ? 500 : wait_ms * 2;
  if (wait_ms > kMostWaitMs) wait_ms = kMostWaitMs;
  start_next_boot_ms = BootMs() + wait_ms;
  if (start_next_boot_ms == 0) start_next_boot_ms = 1;
}

// Nobody has taken the request to end: all is asked, and we end with the last of it.
static void EndWithout(void) {
  answer_until_boot_ms = 0;
  const int by[] = {SIGTERM, SIGINT, SIGQUIT};
  size_t i = 0;
  while ((asked & UINT64_C(1) << by[i]) == 0) i++;
  end_status = 128 + by[i];
  keeper.is_leaving = true;
  start_next_boot_ms = 0;
  if (keeper.main_pid > 0) kill(keeper.main_pid, SIGKILL);  // it does not listen
  for (Run* run = RunAfter(0); run != NULL; run = RunAfter(run->serial)) {
    if (RunIsAlive(run)) TreeSignal(run, SIGTERM);
  }
}

void GuardSignal(int number) {
  if (number < 1 || number > 63) return;
  pending |= UINT64_C(1) << number;
  asked |= pending & kToEnd;
  if (TellSignals(pending))
    pending = 0;
  else if (asked != 0 && answer_until_boot_ms == 0)
    answer_until_boot_ms = BootMs() + kAnswerMs;
}

uint64_t GuardTake(void) {
  const uint64_t taken = pending | asked;
  pending = 0;
  was_taken = true;
  answer_until_boot_ms = 0;
  return taken;
}

void GuardEnd(int status) {
  is_ending = true;
  end_status = status;
  start_next_boot_ms = 0;
}

int GuardTick(int wait) {
  const int64_t now = BootMs();
  if (start_next_boot_ms != 0 && now >= start_next_boot_ms) StartAgain();
  if (answer_until_boot_ms != 0 && now >= answer_until_boot_ms) EndWithout();
  const int64_t due[] = {start_next_boot_ms, answer_until_boot_ms};
  for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
    if (due[i] == 0) continue;
    const int64_t left = due[i] > now ? due[i] - now : 0;
    if (wait < 0 || left < wait) wait = (int)left;
  }
  return wait;
}

uint64_t GuardSignals(void) { return pending | asked; }

int GuardStatus(void) {
  if (end_status < 0 || keeper.main_pid != 0) return -1;
  // Who has said what to end with has stopped all that can be stopped.
  return is_ending || !RunsAlive() ? end_status : -1;
}
