// reuse COUNT [--wait|--exec]: runs COUNT processes, one after the other, that all get the same pid
// through /proc/sys/kernel/ns_last_pid, which is turned back for one fork at a time: the pids of
// other processes stay different. If another process has the pid and keeps it, the next ones have a
// new one. The i-th exits with i mod 5 and is reaped at once. Prints
// `PID CODE` of each. With --wait each lives until a line comes on stdin; with --exec every other
// one runs the shell.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_last_pid(int file, pid_t pid) {
  char text[16];
  const int size = snprintf(text, sizeof(text), "%d", (int)pid);
  return pwrite(file, text, (size_t)size, 0) == size;
}

static pid_t get_last_pid(int file) {
  char text[16] = "";
  return pread(file, text, sizeof(text) - 1, 0) > 0 ? (pid_t)atoi(text) : 0;
}

// About as many ms.
enum { kMostTries = 1000 };

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  const int wait_for_line = argc > 2 && strcmp(argv[2], "--wait") == 0;
  const int runs_shell = argc > 2 && strcmp(argv[2], "--exec") == 0;
  const int last_pid = open("/proc/sys/kernel/ns_last_pid", O_RDWR | O_CLOEXEC);
  if (last_pid < 0) return 2;
  setvbuf(stdout, NULL, _IONBF, 0);
  pid_t wanted = 0;
  int tries = 0;
  for (long i = 0; i < count;) {
    int gate[2];
    if (pipe(gate) != 0) return 2;
    const pid_t latest = get_last_pid(last_pid);
    if (latest == 0 || (wanted != 0 && !set_last_pid(last_pid, wanted - 1))) return 2;
    const pid_t pid = fork();
    if (pid == 0) {
      close(gate[1]);
      char byte = 'x';
      const long told = read(gate[0], &byte, 1);
      if (told == 1 && runs_shell && i % 2 == 1) {
        char command[16];
        snprintf(command, sizeof(command), "exit %ld", i % 5);
        execl("/bin/sh", "sh", "-c", command, (char*)NULL);
      }
      _exit(told == 1 ? (int)(i % 5) : 77);  // 77: another process has taken the pid
    }
    if (pid < 0) return 2;
    if (wanted == 0) {
      wanted = pid;
    } else if (!set_last_pid(last_pid, latest)) {
      return 2;
    }
    close(gate[0]);
    if (pid != wanted) {
      if (++tries == kMostTries) wanted = tries = 0;
      usleep(1000);
    } else {
      tries = 0;
      printf("%d %ld\n", (int)pid, i % 5);
      char line[16];
      if (wait_for_line && fgets(line, sizeof(line), stdin) == NULL) return 2;
      if (write(gate[1], "x", 1) != 1) return 2;
      i++;
    }
    close(gate[1]);
    int status;
    if (waitpid(pid, &status, 0) != pid) return 3;
  }
  return 0;
}
