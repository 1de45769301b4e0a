// flood COUNT: sends a child of its own COUNT signals (SIGUSR1), which the child catches.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void catch_it(int number) { (void)number; }

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  int ready[2];
  if (pipe(ready) != 0) return 2;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    struct sigaction action = {.sa_handler = catch_it};
    sigaction(SIGUSR1, &action, NULL);
    if (write(ready[1], "", 1) != 1) _exit(2);
    for (;;) pause();
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1) return 2;
  for (long i = 0; i < count; i++) kill(child, SIGUSR1);
  kill(child, SIGKILL);
  return waitpid(child, NULL, 0) == child ? 0 : 2;
}
