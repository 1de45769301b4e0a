// mortal [--ignore-term] [--exit-after MS] [--stranger]: prints `ready`, and lives until its stdin
// ends; then exits with 0. A stranger is never to be signalled: with any signal it exits with 66.
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void refuse(int signal) {
  (void)signal;
  _exit(66);
}

int main(int count, char** arguments) {
  int timeout = -1;
  for (int i = 1; i < count; i++) {
    if (strcmp(arguments[i], "--ignore-term") == 0) signal(SIGTERM, SIG_IGN);
    if (strcmp(arguments[i], "--exit-after") == 0 && i + 1 < count) timeout = atoi(arguments[++i]);
    if (strcmp(arguments[i], "--stranger") == 0) {
      for (int number = 1; number < NSIG; number++) signal(number, refuse);
    }
  }
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  poll(&input, 1, timeout);
  return 0;
}
