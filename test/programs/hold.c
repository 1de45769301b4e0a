// hold COUNT: starts COUNT children side by side, and prints the pid of each. After a line on stdin
// they end, the i-th with status i mod 128. Prints `reaped` when all are reaped.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  int gate[2];
  if (pipe(gate) != 0) return 2;
  for (long i = 0; i < count; i++) {
    const pid_t pid = fork();
    if (pid == 0) {
      char byte;
      close(gate[1]);
      if (read(gate[0], &byte, 1) != 0) _exit(255);
      _exit((int)(i % 128));
    }
    if (pid < 0) {
      perror("hold: fork");
      return 2;  // its children read the end of the gate
    }
    printf("%d\n", (int)pid);
  }
  fflush(stdout);
  char line[16];
  if (fgets(line, sizeof(line), stdin) == NULL) return 2;
  close(gate[1]);
  for (long i = 0; i < count; i++) {
    if (wait(NULL) < 0) return 3;
  }
  puts("reaped");
  return 0;
}
