// reparented COUNT MIB: COUNT times, one after the other, a process with MIB MiB of memory begins
// to end, and gets another parent before it has ended: its own, `name-of-15-byte`, ends meanwhile,
// and this one, `8-bytes-`, takes its place. Prints `PID PARENT` of each.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// The child writes its pid once it has its memory.
static void run_child(int out, size_t bytes) {
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) _exit(2);
  memset(memory, 1, bytes);
  const pid_t pid = getpid();
  if (write(out, &pid, sizeof(pid)) != sizeof(pid)) _exit(2);
  for (;;) pause();
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  const size_t bytes = (size_t)(argc > 2 ? atol(argv[2]) : 0) << 20;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || prctl(PR_SET_NAME, "8-bytes-") != 0) return 2;
  setvbuf(stdout, NULL, _IONBF, 0);
  for (long i = 0; i < count; i++) {
    int ready[2];
    if (pipe(ready) != 0) return 2;
    const pid_t parent = fork();
    if (parent < 0) return 2;
    if (parent == 0) {
      prctl(PR_SET_NAME, "name-of-15-byte");
      if (fork() == 0) run_child(ready[1], bytes);
      for (;;) pause();
    }
    close(ready[1]);
    pid_t child;
    if (read(ready[0], &child, sizeof(child)) != sizeof(child)) return 2;
    close(ready[0]);
    printf("%d %d\n", child, parent);
    kill(child, SIGKILL);
    usleep((useconds_t)(i % 10) * 200);
    kill(parent, SIGKILL);
    while (wait(NULL) > 0) continue;
  }
  return 0;
}
