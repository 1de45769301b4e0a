// first-left: a process whose first thread leaves with 0. Then another thread prints `left`, and
// ends the process with 7 after a line on stdin.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int first_has_left(void) {
  char path[40];
  char text[256] = "";
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
  FILE* file = fopen(path, "re");
  if (file == NULL) return 0;
  const int is_read = fgets(text, sizeof(text), file) != NULL;
  fclose(file);
  return is_read && strstr(text, ") Z ") != NULL;
}

static void* other(void* unused) {
  while (!first_has_left()) usleep(1000);
  puts("left");
  fflush(stdout);
  char line[16];
  if (fgets(line, sizeof(line), stdin) == NULL) exit(2);
  exit(7);
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, other, NULL) != 0) return 2;
  pthread_exit(NULL);
}
