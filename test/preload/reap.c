// For LD_PRELOAD: starts a thread that reaps every child with wait(-1), as some host programs do,
// and writes their pids to the file $REAPED.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void* reap(void* file) {
  FILE* reaped = fopen(file, "w");
  for (;;) {
    const pid_t pid = waitpid(-1, NULL, 0);
    if (pid > 0) {
      fprintf(reaped, "%d\n", pid);
      fflush(reaped);
    } else {
      usleep(50);
    }
  }
  return NULL;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  char* file = getenv("REAPED");
  if (file != NULL) pthread_create(&thread, NULL, reap, file);
}
