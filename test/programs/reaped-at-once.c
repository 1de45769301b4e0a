// reaped-at-once COUNT: starts children that the kernel reaps by itself, because their parent
// ignores SIGCHLD. Prints their pids. They exit with 7 when its standard input ends.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  signal(SIGCHLD, SIG_IGN);
  for (int i = atoi(arguments[1]); i > 0; i--) {
    const pid_t pid = fork();
    if (pid < 0) return 2;
    if (pid == 0) {
      char byte;
      while (read(0, &byte, 1) > 0) {
      }
      _exit(7);
    }
    printf("%d\n", (int)pid);
    fflush(stdout);
  }
  while (wait(NULL) > 0) {
  }
  return 0;
}
