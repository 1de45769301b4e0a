// take-pid PID: runs a process that has this pid, which must be free; prints `taken`. It lives
// until our standard input ends, and then exits with 0; we end as it does. Exits with 2 if the pid
// cannot be had.
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  pid_t wanted = argc > 1 ? atoi(argv[1]) : 0;
  struct clone_args args = {
      .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&wanted, .set_tid_size = 1};
  const long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return 2;
  if (pid == 0) {
    char byte;
    if (write(1, "taken\n", 6) != 6) _exit(1);
    while (read(0, &byte, 1) > 0) continue;
    _exit(0);
  }
  int status;
  if (waitpid((pid_t)pid, &status, 0) != pid) return 3;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
