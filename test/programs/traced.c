// traced first-left|first-stays HOLD_MS: a process with a thread that has a tracer when it ends.
// The thread, and its process, stay until the tracer detaches HOLD_MS later.
//
//   first-left:   the first thread has left before; the traced one ends the process with 9
//   first-stays:  the traced thread ends by itself, then the first one ends the process with 7
//
// Prints `PID` and waits for a line before any thread ends. Prints `held` when the thread has
// ended, and waits for another line if HOLD_MS is 0. Prints `reaped STATUS RELEASED_NS` at the end:
// the wait status, and the time on CLOCK_MONOTONIC just before the tracer detached.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile struct {
  pid_t thread;
  int may_end;
}* shared;

static int first_left;

static void sleep_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static void* traced_thread(void* unused) {
  shared->thread = (pid_t)syscall(SYS_gettid);
  while (!shared->may_end) sleep_ms(1);
  if (first_left) {
    sleep_ms(20);  // the first thread leaves before
    exit(9);
  }
  return unused;
}

static void be_traced(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, traced_thread, NULL) != 0) abort();
  while (!shared->may_end) sleep_ms(1);
  if (first_left) pthread_exit(NULL);
  sleep_ms(20);  // the traced thread ends before
  _exit(7);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  first_left = strcmp(argv[1], "first-left") == 0;
  const long hold_ms = atol(argv[2]);
  setvbuf(stdout, NULL, _IONBF, 0);
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t pid = fork();
  if (pid == 0) be_traced();
  while (shared->thread == 0) sleep_ms(1);
  const pid_t thread = shared->thread;
  if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) return 3;
  char line[16];
  printf("%d\n", (int)pid);
  if (fgets(line, sizeof(line), stdin) == NULL) return 2;
  shared->may_end = 1;
  // The thread is dead but not reaped.
  siginfo_t info;
  if (waitid(P_PID, (id_t)thread, &info, WEXITED | WNOWAIT | __WALL) != 0) return 4;
  puts("held");
  sleep_ms(50);
  if (hold_ms == 0 && fgets(line, sizeof(line), stdin) == NULL) return 2;
  sleep_ms(hold_ms);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int status;
  if (waitpid(thread, &status, __WALL) != thread) return 5;
  if (waitpid(pid, &status, 0) != pid) return 6;
  printf("reaped %d %lu\n", status,
         (unsigned long)now.tv_sec * 1000000000u + (unsigned long)now.tv_nsec);
  return 0;
}
