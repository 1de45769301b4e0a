// namespaces COUNT MEMBERS: ends pid namespaces, one every 50 ms. When the first process of each
// ends, the kernel kills its other members, which are called "member". Prints `killed N` at the
// end.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int members;
static volatile int* ready;

static int be_first(void* unused) {
  (void)unused;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; i < members; i++) {
    const pid_t pid = fork();
    if (pid < 0) _exit(1);
    if (pid > 0) continue;
    prctl(PR_SET_NAME, "member");
    // Touches memory, so that address spaces of all ages are torn down together.
    memset(malloc(65536), i, 65536);
    __atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
    for (;;) pause();
  }
  while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) < members) usleep(100);
  _exit(0);
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  static char stack[65536];
  members = atoi(arguments[2]);
  ready = mmap(NULL, sizeof(*ready), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int killed = 0;
  for (int i = atoi(arguments[1]); i > 0; i--) {
    *ready = 0;
    const pid_t first = clone(be_first, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, NULL);
    int status;
    if (first < 0 || waitpid(first, &status, 0) != first || status != 0) {
      perror("namespace");
      return 1;
    }
    killed += members;
    usleep(50000);
  }
  printf("killed %d\n", killed);
  return 0;
}
