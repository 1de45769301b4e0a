// reuse COUNT [--wait|--exec]: runs COUNT processes, one after the other, that all get the same
// pid: clone3(2) can ask for one since Linux 5.5, and leaves those of other processes as they are.
// If another process has the pid and keeps it, the next ones have a new one. The i-th exits with i
// mod 5 and is reaped at once. Prints `PID CODE` of each. With --wait each lives until a line comes
// on stdin; with --exec every other one runs the shell.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// About as many ms.
enum { kMostTries = 1000 };

// 0: any pid.
static pid_t fork_as(pid_t pid) {
  struct clone_args args = {.exit_signal = SIGCHLD};
  if (pid != 0) {
    args.set_tid = (uintptr_t)&pid;
    args.set_tid_size = 1;
  }
  return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  const int wait_for_line = argc > 2 && strcmp(argv[2], "--wait") == 0;
  const int runs_shell = argc > 2 && strcmp(argv[2], "--exec") == 0;
  setvbuf(stdout, NULL, _IONBF, 0);
  pid_t wanted = 0;
  int tries = 0;
  for (long i = 0; i < count;) {
    int gate[2];
    if (pipe(gate) != 0) return 2;
    const pid_t pid = fork_as(wanted);
    if (pid == 0) {
      close(gate[1]);
      char byte;
      if (read(gate[0], &byte, 1) != 1) _exit(77);
      if (runs_shell && i % 2 == 1) {
        char command[16];
        snprintf(command, sizeof(command), "exit %ld", i % 5);
        execl("/bin/sh", "sh", "-c", command, (char*)NULL);
      }
      _exit((int)(i % 5));
    }
    close(gate[0]);
    if (pid < 0) {
      close(gate[1]);
      if (errno != EEXIST) return 2;
      if (++tries == kMostTries) wanted = tries = 0;
      usleep(1000);
      continue;
    }
    wanted = pid;
    tries = 0;
    printf("%d %ld\n", (int)pid, i % 5);
    char line[16];
    if (wait_for_line && fgets(line, sizeof(line), stdin) == NULL) return 2;
    if (write(gate[1], "x", 1) != 1) return 2;
    close(gate[1]);
    int status;
    if (waitpid(pid, &status, 0) != pid) return 3;
    i++;
  }
  return 0;
}
