// fates [--hold] NAME: a process that ends in the way of that name.
//
// Prints `target PID`. When a line comes on stdin, ends the target, and prints `ended STATUS
// SENDER`: the wait status, and the sender of the signal (0: none). With --hold the target stays a
// zombie until another line comes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534

static int ready[2];  // the target is prepared
static int go[2];     // the target may go on
static pid_t target;
static pid_t sender;
static char cgroup[256];
static int holds;

static void die(const char* what) {
  perror(what);
  exit(1);
}

static void await_go(void) {
  char byte = 0;
  if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) _exit(1);
}

static void linger(void) {
  for (;;) pause();
}

static void on_signal(int signal) { (void)signal; }

static void exit_on_signal(int signal) {
  (void)signal;
  _exit(0);
}

static void catch_signal(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(signal, &action, NULL);
}

// --- what the target does

static void* do_fault(void* unused) {
  (void)unused;
  volatile int* volatile nowhere = NULL;
  *nowhere = 0;
  return NULL;
}

static void exit_at_once(void) { _exit(0); }

static void fault(void) { do_fault(NULL); }

static void fault_in_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, do_fault, NULL);
  linger();
}

static void broken_pipe(void) {
  int ends[2];
  signal(SIGPIPE, SIG_DFL);
  if (pipe(ends) != 0) _exit(1);
  close(ends[0]);
  if (write(ends[1], "", 1) < 0) linger();
}

static void spin(void) {
  for (;;) {
  }
}

static void cpu_limit(void) {
  struct rlimit limit = {1, 1};
  setrlimit(RLIMIT_CPU, &limit);
  spin();
}

static void soft_cpu_limit(void) {
  struct rlimit limit = {1, 5};
  setrlimit(RLIMIT_CPU, &limit);
  spin();
}

static void file_limit(void) {
  struct rlimit limit = {0, 0};
  setrlimit(RLIMIT_FSIZE, &limit);
  int fd = memfd_create("limited", 0);
  if (write(fd, "x", 1) < 0) linger();
}

static void interval_timer(void) {
  ualarm(50 * 1000, 0);
  linger();
}

static void posix_timer(void) {
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM};
  struct itimerspec in = {.it_value = {0, 50 * 1000 * 1000}};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) _exit(1);
  timer_settime(timer, 0, &in, NULL);
  linger();
}

static void seccomp_strict(void) {
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  syscall(SYS_getpid);
}

static void forbidden_call(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(1);
  syscall(SYS_getppid);
}

// Accesses a page beyond the end of a file.
static void bad_page(void) {
  volatile char* page =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_create("empty", 0), 0);
  *page = 1;
}

static void reset_and_raise(int number) {
  signal(number, SIG_DFL);
  raise(number);
}

static void raises_again(void) {
  catch_signal(SIGTERM, reset_and_raise, 0);
  await_go();
  linger();
}

static void catches_and_exits(void) {
  catch_signal(SIGTERM, exit_on_signal, 0);
  await_go();
  linger();
}

static void catches_once(void) {
  catch_signal(SIGTERM, on_signal, SA_RESETHAND);
  await_go();
  linger();
}

static void ignores(void) {
  signal(SIGTERM, SIG_IGN);
  await_go();
  linger();
}

static sigset_t block_term(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return set;
}

static void waits_for_signal(void) {
  const sigset_t set = block_term();
  int number;
  await_go();
  sigwait(&set, &number);
  linger();
}

static void waits_and_exits(void) {
  const sigset_t set = block_term();
  int number;
  await_go();
  sigwait(&set, &number);
  _exit(0);
}

static void leads_group(void) {
  setpgid(0, 0);
  await_go();
  linger();
}

static void is_nobodys(void) {
  if (setuid(NOBODY) != 0) _exit(1);
  await_go();
  linger();
}

static void blocks(void) {
  const sigset_t set = block_term();
  await_go();
  char byte;
  if (read(go[0], &byte, 1) != 1) _exit(1);  // once more: both were sent
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  linger();
}

// Sends more signals than the reader can read.
static void flood(void) {
  catch_signal(SIGUSR1, on_signal, 0);
  for (int i = 0; i < 5000; i++) raise(SIGUSR1);
  _exit(0);
}

// Handles faults as a runtime does all day, before it is killed.
static void handles_faults(void) {
  catch_signal(SIGSEGV, on_signal, 0);
  catch_signal(SIGPROF, on_signal, 0);
  catch_signal(SIGRTMIN, on_signal, 0);
  for (int i = 0; i < 1000; i++) {
    raise(SIGSEGV);
    raise(SIGPROF);
    raise(SIGRTMIN);
  }
  await_go();
  linger();
}

// --- what another process does

// Forks a process that lives just long enough to act.
static pid_t by_another(void (*act)(void)) {
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NAME, "sender");
    act();
    _exit(0);
  }
  waitpid(pid, NULL, 0);
  return pid;
}

static void send_term(void) { kill(target, SIGTERM); }
static void send_kill(void) { kill(target, SIGKILL); }
static void send_segv(void) { kill(target, SIGSEGV); }
static void send_to_group(void) { kill(-target, SIGTERM); }

static void send_as_nobody(void) {
  if (setuid(NOBODY) != 0) die("setuid");
  kill(target, SIGTERM);
}

static void send_by_pidfd(void) {
  int fd = (int)syscall(SYS_pidfd_open, target, 0);
  syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0);
}

// Makes the kernel send the signal, by a write to a pipe that the target owns.
static void send_by_file(void) {
  int ends[2];
  if (pipe(ends) != 0 || fcntl(ends[0], F_SETOWN, target) != 0) die("F_SETOWN");
  if (fcntl(ends[0], F_SETSIG, SIGTERM) != 0 || fcntl(ends[0], F_SETFL, O_ASYNC) != 0)
    die("F_SETSIG");
  if (write(ends[1], "", 1) != 1) die("write");
}

static void send_tgkill(void) { syscall(SYS_tgkill, target, target, SIGTERM); }

static void send_queued(void) {
  union sigval value = {.sival_int = 1};
  sigqueue(target, SIGTERM, value);
}

// Pretends to be a timer of init.
static void send_forged(void) {
  siginfo_t info = {.si_signo = SIGTERM, .si_code = SI_TIMER};
  info.si_pid = 1;
  syscall(SYS_rt_sigqueueinfo, target, SIGTERM, &info);
}

static void write_file(const char* name, const char* text) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", cgroup, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) die(path);
  close(fd);
}

static void kill_cgroup(void) { write_file("cgroup.kill", "1"); }

static void trace_and_kill(void) {
  if (ptrace(PTRACE_ATTACH, target, NULL, NULL) != 0) die("PTRACE_ATTACH");
  waitpid(target, NULL, __WALL);
  ptrace(PTRACE_KILL, target, NULL, NULL);
  waitpid(target, NULL, __WALL);
}

// Makes a cgroup in `base`; fails if `base` does not exist.
static int make_cgroup(const char* base) {
  snprintf(cgroup, sizeof(cgroup), "%s/exitwatch-fate-%d", base, getpid());
  return mkdir(cgroup, 0755);
}

static void join_cgroup(void) { write_file("cgroup.procs", "0"); }

static void remove_cgroup(void) {
  for (int i = 0; i < 200 && rmdir(cgroup) != 0 && errno == EBUSY; i++) usleep(10000);
}

static void make_v2_cgroup(void) {
  if (make_cgroup("/sys/fs/cgroup/unified") != 0 && make_cgroup("/sys/fs/cgroup") != 0)
    die("mkdir");
}

// Limits the memory to 16 MiB, in either cgroup hierarchy.
static void make_small_cgroup(void) {
  if (make_cgroup("/sys/fs/cgroup/memory") == 0) {
    write_file("memory.limit_in_bytes", "16777216");
    return;
  }
  if (make_cgroup("/sys/fs/cgroup") != 0) die("mkdir");
  write_file("memory.max", "16777216");
}

static void use_memory(void) {
  for (;;) {
    char* memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memset(memory, 1, 1 << 20);
  }
}

// --- ways that take several steps of both

static void wait_for_target(int* status) {
  if (holds) {
    siginfo_t info;
    char line[64];
    if (waitid(P_PID, (id_t)target, &info, WEXITED | WNOWAIT) != 0) die("waitid");
    if (!fgets(line, sizeof(line), stdin)) exit(1);
  }
  if (waitpid(target, status, __WALL) != target) die("waitpid");
}

static void spawn(void (*live)(void), int prepares) {
  target = fork();
  if (target < 0) die("fork");
  if (target == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "target");
    if (!prepares) await_go();
    live();
    _exit(3);
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1) die("read");
}

// Waits until no signal is pending for the target.
static void await_taken(void) {
  char path[64], line[256];
  unsigned long long pending = 1;
  snprintf(path, sizeof(path), "/proc/%d/status", target);
  while (pending != 0) {
    FILE* file = fopen(path, "re");
    if (!file) die(path);
    while (fgets(line, sizeof(line), file)) {
      if (sscanf(line, "ShdPnd: %llx", &pending) == 1) break;
    }
    fclose(file);
  }
}

static void let_go(void) {
  if (write(go[1], "", 1) != 1) die("write");
}

static void announce(void) {
  char line[64];
  printf("target %d\n", target);
  fflush(stdout);
  if (!fgets(line, sizeof(line), stdin)) exit(1);
}

static void in_terminal(void) {
  await_go();
  linger();
}

// Closes the other end of the target's terminal.
static int hang_up(void) {
  int status, master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) die("posix_openpt");
  char name[64];
  if (ptsname_r(master, name, sizeof(name)) != 0) die("ptsname");
  target = fork();
  if (target == 0) {
    close(master);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    if (open(name, O_RDWR) < 0) _exit(1);
    in_terminal();
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1) die("read");
  announce();
  let_go();
  close(master);
  wait_for_target(&status);
  return status;
}

static int parent_dies(void) {
  int pids[2];
  if (pipe(pids) != 0) die("pipe");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t parent = fork();
  if (parent == 0) {
    prctl(PR_SET_NAME, "parent");
    char byte;
    pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_NAME, "target");
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      await_go();
      linger();
    }
    if (write(pids[1], &child, sizeof(child)) != sizeof(child) || read(go[0], &byte, 1) != 1)
      _exit(1);
    _exit(0);
  }
  char byte;
  if (read(pids[0], &target, sizeof(target)) != sizeof(target) || read(ready[0], &byte, 1) != 1)
    die("read");
  announce();
  // One of the two takes the first byte. The parent ends when it has the other.
  let_go();
  let_go();
  waitpid(parent, NULL, 0);
  sender = parent;
  int status;
  wait_for_target(&status);
  return status;
}

static int namespace_init(void* unused) {
  (void)unused;
  char byte;
  if (fork() == 0) linger();
  if (read(go[0], &byte, 1) != 1) _exit(1);
  _exit(0);
}

// The first process of a pid namespace ends and takes the others with it.
static int namespace_ends(void) {
  static char stack[65536];
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t init = clone(namespace_init, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, NULL);
  if (init < 0) die("clone");
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task/%d/children", init, init);
  for (target = 0; target == 0;) {
    FILE* children = fopen(path, "r");
    if (!children || fscanf(children, "%d", &target) != 1) target = 0;
    if (children) fclose(children);
  }
  announce();
  let_go();
  waitpid(init, NULL, 0);
  return SIGKILL;
}

static int two_at_once(int signal) {
  spawn(linger, 0);
  announce();
  let_go();
  int gate[2], status;
  char byte;
  pid_t pids[2];
  if (pipe(gate) != 0) die("pipe");
  for (int i = 0; i < 2; i++) {
    pids[i] = fork();
    if (pids[i] == 0) {
      close(gate[1]);
      if (read(gate[0], &byte, 1) == 0) kill(target, signal);
      _exit(0);
    }
  }
  close(gate[1]);
  wait_for_target(&status);
  for (int i = 0; i < 2; i++) waitpid(pids[i], NULL, 0);
  // Either may have been first.
  printf("either %d %d\n", pids[0], pids[1]);
  return status;
}

struct fate {
  const char* name;
  void (*live)(void);    // what the target does when it may go on
  int prepares;          // live() calls await_go() itself
  void (*first)(void);   // what another process does then
  void (*second)(void);  // what a third process does, the named sender
};

static const struct fate fates[] = {
    {"exit", exit_at_once, 0, NULL, NULL},
    {"flood", flood, 0, NULL, NULL},
    {"fault", fault, 0, NULL, NULL},
    {"fault-in-thread", fault_in_thread, 0, NULL, NULL},
    {"kill-segv", linger, 0, NULL, send_segv},
    {"abort", abort, 0, NULL, NULL},
    {"broken-pipe", broken_pipe, 0, NULL, NULL},
    {"cpu-limit", cpu_limit, 0, NULL, NULL},
    {"soft-cpu-limit", soft_cpu_limit, 0, NULL, NULL},
    {"file-limit", file_limit, 0, NULL, NULL},
    {"interval-timer", interval_timer, 0, NULL, NULL},
    {"posix-timer", posix_timer, 0, NULL, NULL},
    {"seccomp-strict", seccomp_strict, 0, NULL, NULL},
    {"forbidden-call", forbidden_call, 0, NULL, NULL},
    {"bad-page", bad_page, 0, NULL, NULL},
    {"group-kill", leads_group, 1, NULL, send_to_group},
    {"other-user", is_nobodys, 1, NULL, send_as_nobody},
    {"by-pidfd", linger, 0, NULL, send_by_pidfd},
    {"by-file", linger, 0, NULL, send_by_file},
    {"sigqueue", linger, 0, NULL, send_queued},
    {"forged-timer", linger, 0, NULL, send_forged},
    {"tgkill", linger, 0, NULL, send_tgkill},
    {"ptrace-kill", linger, 0, NULL, trace_and_kill},
    {"raises-again", raises_again, 1, send_term, NULL},
    {"catches-and-exits", catches_and_exits, 1, send_term, NULL},
    {"caught-then-killed", catches_once, 1, send_term, send_term},
    {"ignored-then-killed", ignores, 1, send_term, send_kill},
    {"term-then-kill", catches_once, 1, send_term, send_kill},
    {"sigwait-then-killed", waits_for_signal, 1, send_term, send_kill},
    {"sigwait-then-exits", waits_and_exits, 1, send_term, NULL},
    {"handled-faults", handles_faults, 1, NULL, send_kill},
};

static int end_by(const struct fate* fate) {
  int status;
  spawn(fate->live, fate->prepares);
  announce();
  let_go();
  if (fate->first) {
    sender = by_another(fate->first);
    if (fate->second) await_taken();
  }
  if (fate->second) sender = by_another(fate->second);
  wait_for_target(&status);
  return status;
}

static int blocked_twice(void) {
  int status;
  spawn(blocks, 1);
  announce();
  let_go();
  sender = by_another(send_term);
  by_another(send_term);
  let_go();
  wait_for_target(&status);
  return status;
}

static int cgroup_killed(void) {
  int status;
  make_v2_cgroup();
  target = fork();
  if (target == 0) {
    prctl(PR_SET_NAME, "target");
    join_cgroup();
    await_go();
    linger();
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1) die("read");
  announce();
  let_go();
  sender = by_another(kill_cgroup);
  wait_for_target(&status);
  remove_cgroup();
  return status;
}

static int out_of_memory(int is_killed_by_hand) {
  int status;
  make_small_cgroup();
  target = fork();
  if (target == 0) {
    prctl(PR_SET_NAME, "target");
    join_cgroup();
    await_go();
    if (is_killed_by_hand) linger();
    use_memory();
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1) die("read");
  announce();
  let_go();
  if (is_killed_by_hand) sender = by_another(send_kill);
  wait_for_target(&status);
  remove_cgroup();
  return status;
}

static int end(const char* name) {
  if (strcmp(name, "hang-up") == 0) return hang_up();
  if (strcmp(name, "parent-death") == 0) return parent_dies();
  if (strcmp(name, "namespace-death") == 0) return namespace_ends();
  if (strcmp(name, "two-kills") == 0) return two_at_once(SIGKILL);
  if (strcmp(name, "two-terms") == 0) return two_at_once(SIGTERM);
  if (strcmp(name, "blocked-twice") == 0) return blocked_twice();
  if (strcmp(name, "cgroup-kill") == 0) return cgroup_killed();
  if (strcmp(name, "out-of-memory") == 0) return out_of_memory(0);
  if (strcmp(name, "killed-in-small-cgroup") == 0) return out_of_memory(1);
  for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++) {
    if (strcmp(fates[i].name, name) == 0) return end_by(&fates[i]);
  }
  fprintf(stderr, "no such fate: %s\n", name);
  exit(2);
}

int main(int count, char** arguments) {
  holds = count == 3 && strcmp(arguments[1], "--hold") == 0;
  if (count != 2 + holds || pipe(ready) != 0 || pipe(go) != 0) return 2;
  int status = end(arguments[count - 1]);
  printf("ended %d %d\n", status, sender);
  return 0;
}
