// busy MODE MS: uses the processor for MS milliseconds in all, then prints what it has used by
// CLOCK_PROCESS_CPUTIME_ID, in ns, and the most memory that it had, in bytes, and ends.
//   plain: in its only thread
//   threads: in four threads, which still exist when it exits
//   left: in four threads, which have ended when it exits
//   leader-first: in another thread, after its first one has ended
//   killed: as `threads`, and ends by SIGKILL
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void burn(uint64_t ns) {
  const uint64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ns;
  while (now(CLOCK_THREAD_CPUTIME_ID) < until) continue;
}

static void tell(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%llu %lld\n", (unsigned long long)now(CLOCK_PROCESS_CPUTIME_ID),
         (long long)usage.ru_maxrss * 1024);
  fflush(stdout);
}

static pthread_barrier_t burnt;
static int stays;

static void* work(void* ns) {
  burn((uint64_t)(uintptr_t)ns);
  pthread_barrier_wait(&burnt);
  while (stays) pause();
  return NULL;
}

static void* work_alone(void* ns) {
  burn((uint64_t)(uintptr_t)ns);
  tell();
  exit(0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* const mode = argv[1];
  const uint64_t ns = strtoull(argv[2], NULL, 10) * 1000000u;
  if (strcmp(mode, "leader-first") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_alone, (void*)(uintptr_t)ns) != 0) return 3;
    pthread_exit(NULL);
  }
  if (strcmp(mode, "plain") == 0) {
    burn(ns);
  } else {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    stays = strcmp(mode, "left") != 0;
    pthread_barrier_init(&burnt, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
      if (pthread_create(&threads[i], NULL, work, (void*)(uintptr_t)(ns / THREADS)) != 0) return 3;
    }
    pthread_barrier_wait(&burnt);
    for (int i = 0; !stays && i < THREADS; i++) pthread_join(threads[i], NULL);
  }
  tell();
  if (strcmp(mode, "killed") == 0) kill(getpid(), SIGKILL);
  return 0;
}
