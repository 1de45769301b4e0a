// fighter TOKEN: a tree that fights back. It forks twice, takes sessions and groups of its own,
// clears its environment, ignores what can be ignored, forks when it is signalled, and forks on.
// Bounded: at most kMost processes at a time, and none lives longer than kSafetySeconds. Prints
// `grown` once.
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kMost = 40, kGrown = 12, kSafetySeconds = 100 };

struct Shared {
  atomic_int forks;
  atomic_int living;
};

static struct Shared* shared;
static unsigned state;

static unsigned below(unsigned limit) {
  state = state * 1103515245u + 12345u;
  return (state >> 16) % limit;
}

static void fight(int again);

static void spawn(void) {
  if (atomic_fetch_add(&shared->living, 1) >= kMost) {
    atomic_fetch_sub(&shared->living, 1);
    return;
  }
  const pid_t pid = fork();
  if (pid == 0) fight(1);
  if (pid < 0) atomic_fetch_sub(&shared->living, 1);
}

static void on_signal(int signal) {
  (void)signal;
  spawn();
}

static void fight(int again) {
  state ^= (unsigned)getpid() * 2654435761u;
  alarm(kSafetySeconds);
  clearenv();
  const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGCONT, SIGUSR1};
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) signal(caught[i], on_signal);
  signal(SIGQUIT, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  if (again && below(2) == 0) setsid();
  if (again && below(2) == 0) setpgid(0, 0);
  // Its parent goes at once: whose child is it now?
  if (again && below(3) == 0 && fork() != 0) _exit(0);
  atomic_fetch_add(&shared->forks, 1);
  for (;;) {
    usleep(200 + below(3000));
    spawn();
    if (again && below(40) == 0) {
      atomic_fetch_sub(&shared->living, 1);
      _exit(0);
    }
  }
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  state = (unsigned)atoi(arguments[1]);
  const pid_t first = fork();
  if (first == 0) fight(0);
  while (atomic_load(&shared->forks) < kGrown) usleep(1000);
  puts("grown");
  fflush(stdout);
  fight(0);
  return 0;
}
