// reaper COUNT MS: one child after the other uses a processor for MS milliseconds and exits; the
// parent, on another processor, reaps it the moment it can. Prints `PID US` of each: what wait4(2)
// says that it used, in microseconds.
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

static void burn(uint64_t ns) {
  struct timespec time;
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  } while ((uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec < ns);
}

static long long us(struct timeval time) { return time.tv_sec * 1000000ll + time.tv_usec; }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const uint64_t ns = strtoull(argv[2], NULL, 10) * 1000000;
  pin(0);
  for (long i = atol(argv[1]); i > 0; i--) {
    const pid_t pid = fork();
    if (pid < 0) return 2;
    if (pid == 0) {
      pin(1);
      burn(ns);
      _exit(0);
    }
    struct rusage usage;
    int status;
    while (wait4(pid, &status, WNOHANG, &usage) != pid) continue;
    printf("%d %lld\n", (int)pid, us(usage.ru_utime) + us(usage.ru_stime));
  }
  return 0;
}
