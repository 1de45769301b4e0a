// Starts a thread that waits for the file $CRASH_WHEN. Then $CRASH_HOW decides whether it accesses
// invalid memory, aborts, or exits with 3.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* wait_and_crash(void* unused) {
  (void)unused;
  const char* when = getenv("CRASH_WHEN");
  const char* how = getenv("CRASH_HOW");
  while (access(when, F_OK) != 0) usleep(1000);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "exit") == 0) _exit(3);
  volatile int* volatile nowhere = NULL;
  *nowhere = 0;
  return NULL;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  if (getenv("CRASH_WHEN") && getenv("CRASH_HOW")) {
    pthread_create(&thread, NULL, wait_and_crash, NULL);
  }
}
