// Ends processes in every possible way, and prints the statuses from waitpid.
//
//   deaths [--hold] [--reap now|late|ignore] DEATH...
//
// Forks one child per DEATH, side by side. Prints `spawned PID DEATH NS` for each; with --hold they
// live until a line comes on stdin. Then prints `reaped PID STATUS ALIVE_NS REAPED_NS` for each:
// the wait status, and on CLOCK_MONOTONIC when its last thread was still alive and when this
// process learned of its death. With `late` the children stay zombies for 30 ms. With `ignore` they
// are not waited for: STATUS is -1, and REAPED_NS is when they were gone.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t* alive_ns;  // shared with the parent

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static void alive(void) { *alive_ns = now_ns(); }

static void allow_core(int allowed) {
  struct rlimit limit = {allowed ? RLIM_INFINITY : 0, RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &limit);
}

static void* idle(void* unused) {
  for (;;) pause();
  return unused;
}

static void start(void* (*body)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, argument) != 0) abort();
}

static void idlers(int count) {
  for (int i = 0; i < count; i++) start(idle, NULL);
}

static void fault(void) {
  alive();
  volatile int* nowhere = NULL;
  *nowhere = 1;
}

static int first_leaves;

// Waits until the first thread has left, if it leaves.
static void await_first(void) {
  char path[40], text[256] = "";
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
  while (first_leaves && strstr(text, ") Z ") == NULL) {
    sleep_ms(1);
    FILE* file = fopen(path, "re");
    if (file == NULL || fgets(text, sizeof(text), file) == NULL) abort();
    fclose(file);
  }
}

static void* exit_later(void* ms) {
  sleep_ms((long)(intptr_t)ms);
  await_first();
  alive();
  exit(7);
}

// Ends the process while the first thread is ending by itself: PF_EXITING of the kernel's
// <linux/sched.h>.
static void* exit_beside(void* unused) {
  char path[40], text[256];
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
  for (unsigned flags = 0; (flags & 4u) == 0;) {
    FILE* file = fopen(path, "re");
    if (file == NULL || fgets(text, sizeof(text), file) == NULL) abort();
    fclose(file);
    sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %u", &flags);
  }
  alive();
  exit(7);
  return unused;
}

// Makes the exit of this thread take milliseconds: it closes many descriptors of its own.
static void make_slow(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (unshare(CLONE_FILES) != 0) abort();
  for (int i = 0; i < 100000 && dup(0) >= 0; i++) {
  }
}

static void* return_later(void* ms) {
  sleep_ms((long)(intptr_t)ms);
  await_first();
  alive();
  return NULL;
}

static void* kill_later(void* ms) {
  sleep_ms((long)(intptr_t)ms);
  await_first();
  alive();
  kill(getpid(), SIGKILL);
  return idle(NULL);
}

static void* fault_later(void* ms) {
  sleep_ms((long)(intptr_t)ms);
  await_first();
  fault();
  return NULL;
}

static void* raw_exit_9(void* unused) {
  (void)unused;
  await_first();
  syscall(SYS_exit, 9);
  return NULL;
}

static int task_count(void) {
  DIR* tasks = opendir("/proc/self/task");
  int count = 0;
  while (tasks != NULL && readdir(tasks) != NULL) count++;
  closedir(tasks);
  return count - 2;  // without . and ..
}

static void* raw_exit_10(void* unused) {
  (void)unused;
  while (task_count() > 2) sleep_ms(5);  // the first thread, which has left, and this one
  sleep_ms(10);
  alive();
  syscall(SYS_exit, 10);
  return NULL;
}

// The new program lives for a while and exits with 4.
static void* exec_later(void* ms) {
  sleep_ms((long)(intptr_t)ms);
  await_first();
  *alive_ns = now_ns() + 50000000;
  execl("/bin/sh", "sh", "-c", "sleep 0.05; exit 4", (char*)NULL);
  abort();
}

static void* exec_briefly(void* unused) {
  alive();
  execl("/bin/sh", "sh", "-c", "exit 4", (char*)NULL);
  return unused;
}

static void die(const char* how) {
  allow_core(0);
  if (strcmp(how, "exit-0") == 0) {
    alive();
    exit(0);
  }
  if (strcmp(how, "exit-7") == 0) {
    alive();
    exit(7);
  }
  if (strcmp(how, "exit-255") == 0) {
    alive();
    exit(255);
  }
  if (strcmp(how, "sigkill") == 0) {
    alive();
    kill(getpid(), SIGKILL);
  }
  if (strcmp(how, "sigterm") == 0) {
    alive();
    kill(getpid(), SIGTERM);
  }
  if (strcmp(how, "real-time") == 0) {
    alive();
    kill(getpid(), SIGRTMIN + 3);
  }
  if (strcmp(how, "fault") == 0) fault();
  if (strcmp(how, "fault-core") == 0) {
    allow_core(1);
    fault();
  }
  if (strcmp(how, "abort") == 0) {
    idlers(2);
    alive();
    abort();
  }
  if (strcmp(how, "exit-group-32") == 0) {
    idlers(31);
    start(exit_later, (void*)5);
    idle(NULL);
  }
  if (strcmp(how, "exit-0-32") == 0) {
    idlers(31);
    alive();
    exit(0);
  }
  if (strcmp(how, "worker-exits") == 0) {
    start(exit_later, (void*)5);
    idle(NULL);
  }
  if (strcmp(how, "leader-first") == 0) {
    first_leaves = 1;
    start(exit_later, (void*)300);
    pthread_exit(NULL);
  }
  if (strcmp(how, "leader-first-briefly") == 0) {
    start(exit_later, (void*)0);
    pthread_exit(NULL);
  }
  if (strcmp(how, "leader-first-slowly") == 0) {
    start(exit_beside, NULL);
    make_slow();
    syscall(SYS_exit, 0);
  }
  if (strcmp(how, "leader-first-returns") == 0) {
    first_leaves = 1;
    start(return_later, (void*)20);
    pthread_exit(NULL);
  }
  if (strcmp(how, "raw-exits") == 0) {
    first_leaves = 1;
    start(raw_exit_9, NULL);
    start(raw_exit_10, NULL);
    syscall(SYS_exit, 5);
  }
  if (strcmp(how, "leader-first-killed") == 0) {
    first_leaves = 1;
    idlers(2);
    start(kill_later, (void*)20);
    pthread_exit(NULL);
  }
  if (strcmp(how, "leader-first-fault-core") == 0) {
    first_leaves = 1;
    allow_core(1);
    idlers(2);
    start(fault_later, (void*)20);
    pthread_exit(NULL);
  }
  if (strcmp(how, "threads-killed") == 0) {
    idlers(4);
    alive();
    kill(getpid(), SIGKILL);
    idle(NULL);
  }
  if (strcmp(how, "threads-termed") == 0) {
    idlers(4);
    alive();
    kill(getpid(), SIGTERM);
    idle(NULL);
  }
  if (strcmp(how, "worker-fault") == 0) {
    idlers(2);
    start(fault_later, (void*)5);
    idle(NULL);
  }
  if (strcmp(how, "worker-fault-core") == 0) {
    allow_core(1);
    idlers(2);
    start(fault_later, (void*)5);
    idle(NULL);
  }
  if (strcmp(how, "leader-fault-core") == 0) {
    allow_core(1);
    idlers(3);
    fault();
  }
  if (strcmp(how, "worker-execs") == 0) {
    start(exec_later, (void*)5);
    idle(NULL);
  }
  if (strcmp(how, "worker-execs-briefly") == 0) {
    start(exec_briefly, NULL);
    idle(NULL);
  }
  if (strcmp(how, "leader-first-execs") == 0) {
    first_leaves = 1;
    start(exec_later, (void*)20);
    pthread_exit(NULL);
  }
  fprintf(stderr, "no such death: %s\n", how);
  _exit(99);
}

// Cores go to a folder of each child: with the usual pattern they would share a name.
static void remove_folder(const char* path) {
  DIR* folder = opendir(path);
  if (folder == NULL) return;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;)
    unlinkat(dirfd(folder), entry->d_name, 0);
  closedir(folder);
  rmdir(path);
}

struct child {
  pid_t pid;
  volatile uint64_t* alive_ns;
  char folder[PATH_MAX];
};

int main(int argc, char** argv) {
  int hold = 0;
  const char* reap = "now";
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; first++) {
    if (strcmp(argv[first], "--hold") == 0) hold = 1;
    if (strcmp(argv[first], "--reap") == 0) reap = argv[++first];
  }
  const int count = argc - first;
  struct child* children = calloc((size_t)count, sizeof(*children));
  volatile uint64_t* shared =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int gate[2];
  if (children == NULL || shared == MAP_FAILED || count < 1 || count > 500 || pipe(gate) != 0)
    return 2;
  if (strcmp(reap, "ignore") == 0) signal(SIGCHLD, SIG_IGN);
  setvbuf(stdout, NULL, _IONBF, 0);  // the children inherit no output
  const char* temporary = getenv("TMPDIR");
  if (temporary == NULL) temporary = "/tmp";

  for (int i = 0; i < count; i++) {
    struct child* child = &children[i];
    child->alive_ns = &shared[i];
    snprintf(child->folder, sizeof(child->folder), "%s/exitwatch-deaths-XXXXXX", temporary);
    if (mkdtemp(child->folder) == NULL) return 2;
    const uint64_t spawned_ns = now_ns();
    child->pid = fork();
    if (child->pid == 0) {
      alive_ns = child->alive_ns;
      close(gate[1]);
      char byte;
      while (read(gate[0], &byte, 1) > 0) {
      }
      close(gate[0]);
      if (chdir(child->folder) != 0) _exit(98);
      die(argv[first + i]);
      idle(NULL);
    }
    printf("spawned %d %s %lu\n", child->pid, argv[first + i], (unsigned long)spawned_ns);
  }
  char line[16];
  if (hold && fgets(line, sizeof(line), stdin) == NULL) return 2;
  close(gate[1]);

  if (strcmp(reap, "ignore") == 0) {
    for (int i = 0; i < count; i++) {
      while (kill(children[i].pid, 0) == 0) sleep_ms(1);
      printf("reaped %d -1 %lu %lu\n", children[i].pid, (unsigned long)*children[i].alive_ns,
             (unsigned long)now_ns());
      remove_folder(children[i].folder);
    }
    return 0;
  }
  for (int i = 0; i < count; i++) {
    siginfo_t info;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0) return 2;
    const uint64_t dead_ns = now_ns();
    if (strcmp(reap, "late") == 0) sleep_ms(30);
    int status = 0;
    if (waitpid(info.si_pid, &status, 0) != info.si_pid) return 2;
    for (int j = 0; j < count; j++) {
      if (children[j].pid != info.si_pid) continue;
      printf("reaped %d %d %lu %lu\n", info.si_pid, status, (unsigned long)*children[j].alive_ns,
             (unsigned long)dead_ns);
      remove_folder(children[j].folder);
    }
  }
  return 0;
}
