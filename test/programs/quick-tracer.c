// quick-tracer COUNT: runs COUNT processes, one after the other, whose first thread leaves with 0
// before another thread ends the process with i mod 128. That thread has a tracer, which detaches
// the moment it has ended. Then prints `PID STATUS` of each, from waitpid.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile struct {
  pid_t thread;
  int may_end;
}* shared;

static long code;

static int first_has_left(void) {
  char path[40];
  char text[256] = "";
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const int has_left = read(file, text, sizeof(text) - 1) > 0 && strstr(text, ") Z ") != NULL;
  close(file);
  return has_left;
}

static void* traced_thread(void* unused) {
  shared->thread = (pid_t)syscall(SYS_gettid);
  while (!shared->may_end || !first_has_left()) sched_yield();
  syscall(SYS_exit_group, code);
  return unused;
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  int(*ends)[2] = calloc((size_t)count + 1, sizeof(*ends));
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (ends == NULL || shared == MAP_FAILED) return 2;
  for (long i = 0; i < count; i++) {
    shared->thread = 0;
    shared->may_end = 0;
    code = i % 128;
    const pid_t pid = fork();
    if (pid == 0) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, traced_thread, NULL) != 0) abort();
      while (!shared->may_end) sched_yield();
      syscall(SYS_exit, 0);
    }
    while (shared->thread == 0) sched_yield();
    const pid_t thread = shared->thread;
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) return 3;
    shared->may_end = 1;
    int status;
    while (waitpid(thread, &status, __WALL | WNOHANG) == 0) continue;
    if (waitpid(pid, &status, 0) != pid) return 4;
    ends[i][0] = pid;
    ends[i][1] = status;
  }
  for (long i = 0; i < count; i++) printf("%d %d\n", ends[i][0], ends[i][1]);
  return 0;
}
