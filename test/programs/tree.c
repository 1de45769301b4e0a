// tree KIND SEED TOKEN [CGROUP]: a parent that must never be signalled (any signal makes it exit
// with 66), and a random tree of processes below it. The test stops the root of the tree. KIND:
//   session  the root leads a session: orphans stay in it, or in that of another member
//   group    the root leads a process group: orphans stay in it, or in that of another member
//   plain    the root leads nothing: there are no orphans before it is stopped
//   cgroup   the root has moved into CGROUP, which has no other processes: orphans are in any
//   session
// Some members ignore SIGTERM, and some keep forking, within bounds. All of them have TOKEN in
// their arguments and share the parent's stdout. Prints the pid of the root when the tree has
// grown.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kMostForks = 80, kSafetySeconds = 120 };

struct Shared {
  atomic_int planned;
  atomic_int grown;
  atomic_int forks;
};

static struct Shared* shared;
static char kind;
static unsigned state;

static unsigned below(unsigned limit) {
  state = state * 1103515245u + 12345u;
  return (state >> 16) % limit;
}

static void refuse(int signal) {
  (void)signal;
  _exit(66);
}

static int may_fork(void) { return atomic_fetch_add(&shared->forks, 1) < kMostForks; }

static pid_t fork_member(void) {
  const unsigned salt = below(1u << 15);
  const pid_t pid = fork();
  if (pid == 0) {
    state ^= salt << 8 ^ (unsigned)getpid();
    alarm(kSafetySeconds);
  }
  return pid;
}

static void leave_group_or_session(void) {
  switch (below(4)) {
    case 0:
      setsid();
      break;
    case 1:
      setpgid(0, 0);
      break;
    default:
      break;
  }
}

static _Noreturn void wait_for_ever(void) {
  for (;;) pause();
}

// Forks now and then, until the limit is reached. The children live for a moment or for ever.
static _Noreturn void fork_for_ever(int ignores_term) {
  for (;;) {
    usleep(500 + below(4000));
    if (!may_fork()) wait_for_ever();
    if (fork_member() != 0) continue;
    // A child that leaves while its parent may be dying could not be told from a stranger.
    if (kind == 'c' || ignores_term) leave_group_or_session();
    // Neither could a process that has left everything it shared with others, if its parent then
    // dies.
    const int is_orphan = kind == 'c' || (kind == 's' && getsid(0) != getpid()) ||
                          (kind == 'g' && getpgrp() != getpid());
    if (is_orphan && below(3) == 0 && may_fork() && fork_member() != 0) _exit(0);
    if (below(2) == 0) {
      usleep(below(20000));
      _exit(0);
    }
    signal(SIGTERM, below(2) == 0 ? SIG_IGN : SIG_DFL);
    wait_for_ever();
  }
}

// Returns in children, each of which must grow a branch of its own.
static void grow(int depth) {
  signal(SIGCHLD, SIG_IGN);
  const int children = depth == 0 ? 2 : depth < 3 ? (int)below(3) : 0;
  for (int i = 0; i < children; i++) {
    if (!may_fork()) break;
    atomic_fetch_add(&shared->planned, 1);
    if (fork_member() != 0) continue;
    // An orphan can be found only by what it shares with a member.
    const int is_orphan = kind != 'p' && below(4) == 0;
    if (!is_orphan || kind == 'c') leave_group_or_session();
    if (is_orphan && fork_member() != 0) _exit(0);
    return;
  }
  const int forks_on = below(3) == 0;
  const int ignores_term = below(2) == 0 || (forks_on && kind == 'p');
  signal(SIGTERM, ignores_term ? SIG_IGN : SIG_DFL);
  atomic_fetch_add(&shared->grown, 1);
  if (depth == 0) {
    while (atomic_load(&shared->grown) < atomic_load(&shared->planned)) usleep(500);
    dprintf(STDOUT_FILENO, "%d\n", getpid());
  }
  if (forks_on) fork_for_ever(ignores_term);
  wait_for_ever();
}

static void join_cgroup(const char* cgroup) {
  char path[512];
  snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, "0", 1) != 1) _exit(3);
  close(file);
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  kind = arguments[1][0];
  state = (unsigned)atoi(arguments[2]) * 2654435761u;
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  atomic_store(&shared->planned, 1);
  if (fork_member() == 0) {
    if (count > 4) join_cgroup(arguments[4]);
    if (kind == 's') setsid();
    if (kind == 'g') setpgid(0, 0);
    for (int depth = 0;; depth++) grow(depth);
  }
  for (int number = 1; number < NSIG; number++) {
    if (number != SIGCHLD) signal(number, refuse);
  }
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  return 0;
}
