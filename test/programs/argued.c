// argued LENGTHS COUNT: executes itself COUNT times, one after the other, with arguments of that
// many bytes in all, the lengths going from 0 to LENGTHS in equal steps, and with an environment
// that says ENVIRONMENT all over. Prints `PID LENGTH` of each: of the pattern that it gave, in one
// argument. argued title TEXT ROOM: overwrites its arguments (ROOM bytes of padding) with TEXT,
// without a NUL behind, on into its environment, and prints how many bytes they have; with a
// further argument it goes on until its stdin ends. argued thread ARG...: another thread executes
// `true ARG...`.
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char kPattern[] = "abcdefghijklmnopqrstuvwxyz0123456789";

static char** in_thread;

static void* exec_true(void* unused) {
  execv("/bin/true", in_thread);
  _exit(3);
  return unused;
}

static int run(const char* self, long length) {
  char* const text = malloc((size_t)length + 1);
  if (text == NULL) return 2;
  for (long i = 0; i < length; i++) text[i] = kPattern[i % (long)(sizeof(kPattern) - 1)];
  text[length] = '\0';
  enum { VARIABLES = 20, BYTES = 4096 };
  static char variables[VARIABLES][BYTES];
  char* environment[VARIABLES + 1] = {NULL};
  for (int i = 0; i < VARIABLES; i++) {
    int at = snprintf(variables[i], BYTES, "V%d=", i);
    while (at < BYTES - 12) at += snprintf(variables[i] + at, (size_t)(BYTES - at), "ENVIRONMENT");
    environment[i] = variables[i];
  }
  char* const arguments[] = {"quit", text, NULL};
  pid_t pid;
  int status;
  if (posix_spawn(&pid, self, NULL, NULL, arguments, environment) != 0) return 3;
  if (waitpid(pid, &status, 0) != pid || status != 0) return 4;
  printf("%d %ld\n", (int)pid, length);
  free(text);
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 0 && strcmp(argv[0], "quit") == 0) return 0;
  if (argc < 3) return 1;
  if (strcmp(argv[1], "title") == 0) {
    // What exec put there: the arguments, then the environment.
    char* const begin = argv[0];
    const size_t bytes = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - begin);
    char title[1024];
    snprintf(title, sizeof(title), "%s", argv[2]);
    while (strlen(title) < bytes + 64) strcat(title, ".");
    memcpy(begin, title, bytes + 64);
    printf("%zu\n", bytes);
    fflush(stdout);
    if (argc > 4) getchar();
    return 0;
  }
  if (strcmp(argv[1], "thread") == 0) {
    pthread_t thread;
    in_thread = argv + 1;
    in_thread[0] = "true";
    if (pthread_create(&thread, NULL, exec_true, NULL) != 0) return 3;
    for (;;) pause();
  }
  const long lengths = atol(argv[1]), count = atol(argv[2]);
  for (long i = 0; i < count; i++) {
    const int failed = run("/proc/self/exe", count < 2 ? lengths : lengths * i / (count - 1));
    if (failed != 0) return failed;
  }
  return 0;
}
