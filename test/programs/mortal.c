// mortal [--ignore-term] [--exit-after MS] [--stranger] [--thread] [--child]: prints `ready`, lives
// until its stdin ends, and exits with 0. A stranger must never be signalled: any signal makes it
// exit with 66. With --thread it has a second thread, whose id it prints after `ready`. With
// --child it has a child that does the same, and exits with 66 unless the child exits with 0.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void refuse(int signal) {
  (void)signal;
  _exit(66);
}

static void* second(void* unused) {
  printf("ready\n%ld\n", syscall(SYS_gettid));
  fflush(stdout);
  for (;;) pause();
  return unused;
}

int main(int count, char** arguments) {
  int timeout = -1;
  int has_thread = 0;
  int has_child = 0;
  for (int i = 1; i < count; i++) {
    if (strcmp(arguments[i], "--ignore-term") == 0) signal(SIGTERM, SIG_IGN);
    if (strcmp(arguments[i], "--exit-after") == 0 && i + 1 < count) timeout = atoi(arguments[++i]);
    if (strcmp(arguments[i], "--thread") == 0) has_thread = 1;
    if (strcmp(arguments[i], "--child") == 0) has_child = 1;
    if (strcmp(arguments[i], "--stranger") == 0) {
      for (int number = 1; number < NSIG; number++) {
        if (number != SIGCHLD) signal(number, refuse);
      }
    }
  }
  const pid_t child = has_child ? fork() : -1;
  pthread_t thread;
  if (has_thread) {
    if (pthread_create(&thread, NULL, second, NULL) != 0) return 1;
  } else if (child != 0 && write(STDOUT_FILENO, "ready\n", 6) != 6) {
    return 1;
  }
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  poll(&input, 1, timeout);
  int status = 0;
  if (child > 0 && (waitpid(child, &status, 0) != child || status != 0)) return 66;
  return 0;
}
