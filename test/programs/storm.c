// storm COUNT [RATE]: ends COUNT children by vfork and _exit, one after the other, at most RATE a
// second. The i-th exits with status i mod 128. Then prints `PID REAPED_NS` of each: the time on
// CLOCK_MONOTONIC when waitpid returned.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct reaped {
  pid_t pid;
  uint64_t ns;
};

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  struct reaped* reaped = calloc((size_t)count + 1, sizeof(*reaped));
  const long rate = argc > 2 ? atol(argv[2]) : 0;
  if (reaped == NULL) return 2;
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (volatile long i = 0; i < count; i++) {
    if (rate > 0) {
      next.tv_nsec += 1000000000 / rate;
      next.tv_sec += next.tv_nsec / 1000000000;
      next.tv_nsec %= 1000000000;
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    const pid_t pid = vfork();
    if (pid == 0) _exit((int)(i % 128));
    if (pid < 0) return 2;
    int status;
    if (waitpid(pid, &status, 0) != pid || status != (int)(i % 128) << 8) return 3;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    reaped[i].pid = pid;
    reaped[i].ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  }
  for (long i = 0; i < count; i++) printf("%d %lu\n", reaped[i].pid, (unsigned long)reaped[i].ns);
  return 0;
}
