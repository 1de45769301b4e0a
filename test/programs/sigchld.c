// sigchld COUNT: sends itself SIGCHLD COUNT times.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void on_signal(int signal) { (void)signal; }

int main(int count, char** arguments) {
  if (count != 2) return 2;
  signal(SIGCHLD, on_signal);
  for (long i = atol(arguments[1]); i > 0; i--) kill(getpid(), SIGCHLD);
  return 0;
}
