// renamed: a process that renames itself to MainThread at once, as Node.js 24 does, and ends.
// renamed run COUNT FILE…: COUNT processes, one after the other, that run FILE….
// renamed fork, renamed vfork: a child that runs no file of its own.
// renamed threads: a process whose first thread leaves before another one ends it.
// renamed in-memory: executes itself from a memfd of that name.
// renamed stay COUNT: starts COUNT children after a line of input. After the next line it kills
// them and reaps them at once. Each form but the first prints one line with the PID of each
// process.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static int run(long count, char** command) {
  for (long i = 0; i < count; i++) {
    pid_t pid;
    int status;
    if (posix_spawn(&pid, command[0], NULL, NULL, command, environ) != 0) return 2;
    if (waitpid(pid, &status, 0) != pid || status != 0) return 3;
    printf("%d\n", (int)pid);
  }
  return 0;
}

static int wait_for(pid_t pid) {
  int status;
  if (waitpid(pid, &status, 0) != pid || status != 0) return 3;
  printf("%d\n", (int)pid);
  return 0;
}

static int go_on_in_memory(void) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const int copy = memfd_create("in-memory", MFD_CLOEXEC);
  struct stat stat;
  if (file < 0 || copy < 0 || fstat(file, &stat) != 0) return 2;
  for (off_t left = stat.st_size; left > 0;) {
    const ssize_t sent = sendfile(copy, file, NULL, (size_t)left);
    if (sent <= 0) return 3;
    left -= sent;
  }
  printf("%d\n", (int)getpid());
  fflush(stdout);
  char* arguments[] = {"x", NULL};
  fexecve(copy, arguments, environ);
  return 4;
}

static int wait_for_line(void) {
  int byte;
  do byte = getchar();
  while (byte != '\n' && byte != EOF);
  return byte;
}

static int stay(int count) {
  pid_t pids[100];
  if (count < 1 || count > 100) return 2;
  if (wait_for_line() == EOF) return 0;
  for (int i = 0; i < count; i++) {
    pids[i] = fork();
    if (pids[i] < 0) return 3;
    if (pids[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      prctl(PR_SET_NAME, "MainThread");
      for (;;) pause();
    }
    printf("%d\n", (int)pids[i]);
  }
  fflush(stdout);
  wait_for_line();
  for (int i = 0; i < count; i++) {
    kill(pids[i], SIGTERM);
    if (waitpid(pids[i], NULL, 0) != pids[i]) return 4;
  }
  return 0;
}

static void* other(void* unused) {
  usleep(50 * 1000);
  prctl(PR_SET_NAME, "other");
  _exit(0);
  return unused;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "run") == 0 && argc > 3) return run(atol(argv[2]), argv + 3);
  if (strcmp(what, "stay") == 0 && argc > 2) return stay(atoi(argv[2]));
  if (strcmp(what, "in-memory") == 0) return go_on_in_memory();
  if (strcmp(what, "fork") == 0) {
    const pid_t pid = fork();
    if (pid != 0) return wait_for(pid);
  }
  if (strcmp(what, "vfork") == 0) {
    const pid_t pid = vfork();
    if (pid == 0) _exit(0);
    return wait_for(pid);
  }
  prctl(PR_SET_NAME, "MainThread");
  if (strcmp(what, "threads") == 0) {
    printf("%d\n", (int)getpid());
    fflush(stdout);
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, NULL) != 0) return 2;
    pthread_exit(NULL);
  }
  _exit(0);
}
