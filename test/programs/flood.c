// flood COUNT [blocked]: sends a child of its own COUNT signals, which the child catches (SIGUSR1),
// or blocks and waits for (SIGRTMIN).
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void catch_it(int number) { (void)number; }

static void receive(int is_blocked, int ready) {
  struct sigaction action = {.sa_handler = catch_it};
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMIN);
  if (is_blocked) {
    sigprocmask(SIG_BLOCK, &blocked, NULL);
  } else {
    sigaction(SIGUSR1, &action, NULL);
  }
  if (write(ready, "", 1) != 1) _exit(2);
  for (;;) {
    if (is_blocked) {
      sigwaitinfo(&blocked, NULL);
    } else {
      pause();
    }
  }
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  const int is_blocked = argc > 2;
  int ready[2];
  if (pipe(ready) != 0) return 2;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) receive(is_blocked, ready[1]);
  char byte;
  if (read(ready[0], &byte, 1) != 1) return 2;
  for (long i = 0; i < count; i++) kill(child, is_blocked ? SIGRTMIN : SIGUSR1);
  kill(child, SIGKILL);
  return waitpid(child, NULL, 0) == child ? 0 : 2;
}
