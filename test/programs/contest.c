// contest WAY ROUNDS: ends processes by a signal although several were sent, or by a sender that
// hides, and prints what the end itself says about the sender.
//
// For each round prints `target PID`, waits for a line, ends the target, and prints `ended STATUS
// TRUTH NAME`. TRUTH is the pid in the siginfo of the fatal signal, from the core (NT_SIGINFO) or
// from the tracer; 0 is the kernel. The working directory must be a folder for cores.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SENDERS 3

static pid_t target;
static unsigned seed;

static struct {
  volatile int is_ready;
  volatile int may_go;
  int alert;
  volatile long send_ns;
}* shared;

static void die(const char* what) {
  perror(what);
  exit(1);
}

static void nap(long us) {
  struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}

static int some(int most) { return (int)(rand_r(&seed) % (unsigned)(most + 1)); }

static void linger(void) {
  for (;;) pause();
}

static void* linger_in_thread(void* unused) {
  linger();
  return unused;
}

static void allow_core(void) {
  struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &limit);
}

// Starts a target and prints it when it is ready. Returns when the line has come.
static void spawn(void (*live)(void)) {
  shared->is_ready = shared->may_go = 0;
  target = fork();
  if (target < 0) die("fork");
  if (target == 0) {
    prctl(PR_SET_NAME, "target");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    live();
    _exit(99);
  }
  while (!shared->is_ready) nap(50);
  char line[16];
  printf("target %d\n", (int)target);
  fflush(stdout);
  if (fgets(line, sizeof(line), stdin) == NULL) exit(2);
  shared->may_go = 1;
}

static void ready(void) {
  shared->is_ready = 1;
  while (!shared->may_go) nap(50);
}

// Sends after this many microseconds.
static pid_t sender(int signal, int after_us) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NAME, "sender");
    if (after_us > 0) nap(after_us);
    kill(target, signal);
    _exit(0);
  }
  return pid;
}

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

// A sender that is awake on time: this many ns after all senders are released.
static pid_t alert_sender(int signal, int after_ns) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NAME, "sender");
    __atomic_fetch_add(&shared->alert, 1, __ATOMIC_SEQ_CST);
    while (shared->send_ns == 0) sched_yield();
    while (now_ns() < shared->send_ns + after_ns) {
    }
    kill(target, signal);
    _exit(0);
  }
  return pid;
}

static void reap(const pid_t* pids, int count) {
  for (int i = 0; i < count; i++) waitpid(pids[i], NULL, 0);
}

// The pid in the siginfo of a core, which is removed; -1 if there is no core or no pid.
static pid_t truth_of_core(void) {
  char path[64];
  snprintf(path, sizeof(path), "core.%d", (int)target);
  int file = open(path, O_RDONLY);
  if (file < 0) {
    snprintf(path, sizeof(path), "core");
    file = open(path, O_RDONLY);
  }
  if (file < 0) return -1;
  Elf64_Ehdr header;
  pid_t truth = -1;
  if (pread(file, &header, sizeof(header), 0) != sizeof(header)) die("core");
  for (int i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr part;
    if (pread(file, &part, sizeof(part), (off_t)(header.e_phoff + (Elf64_Off)i * sizeof(part))) < 0)
      die("core");
    if (part.p_type != PT_NOTE) continue;
    char* notes = malloc(part.p_filesz);
    if (pread(file, notes, part.p_filesz, (off_t)part.p_offset) < 0) die("core");
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= part.p_filesz;) {
      const Elf64_Nhdr* note = (const Elf64_Nhdr*)(notes + at);
      const size_t data = at + sizeof(*note) + ((note->n_namesz + 3) & ~3u);
      if (note->n_type == NT_SIGINFO) {
        siginfo_t info;
        memcpy(&info, notes + data, sizeof(info));
        truth = info.si_code > 0 ? 0 : info.si_pid;
      }
      at = data + ((note->n_descsz + 3) & ~3u);
    }
    free(notes);
  }
  close(file);
  unlink(path);
  return truth;
}

static const char* name_of(pid_t pid, const pid_t* senders, int count) {
  if (pid == target) return "target";
  for (int i = 0; i < count; i++) {
    if (senders[i] == pid) return "sender";
  }
  return pid == 0 ? "-" : "contest";
}

static void ended(pid_t truth, const pid_t* senders, int count) {
  int status;
  if (waitpid(target, &status, __WALL) < 0) die("waitpid");
  if (truth == -2) truth = truth_of_core();
  printf("ended %d %d %s\n", status, (int)truth, name_of(truth, senders, count));
  fflush(stdout);
}

// --- Cores

static int core_signal;
static int has_threads;

static void live_to_dump(void) {
  allow_core();
  for (int i = 0; i < has_threads; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, linger_in_thread, NULL);
  }
  // A larger dump takes longer.
  const size_t bytes = 1 << 20;
  memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, bytes);
  ready();
  linger();
}

static void two_dump(int signal, int threads, int count) {
  core_signal = signal;
  has_threads = threads;
  spawn(live_to_dump);
  pid_t senders[SENDERS];
  shared->alert = 0;
  shared->send_ns = 0;
  const int apart = some(3) * 10000;
  for (int i = 0; i < count; i++) senders[i] = alert_sender(signal, i * apart + some(20000));
  while (__atomic_load_n(&shared->alert, __ATOMIC_SEQ_CST) < count) nap(50);
  shared->send_ns = now_ns();
  reap(senders, count);
  ended(-2, senders, count);
}

// --- Tracers

static void live_traced(void) {
  ready();
  linger();
}

static void live_traced_dumping(void) {
  allow_core();
  live_traced();
}

static int wait_stop(void) {
  int status;
  if (waitpid(target, &status, __WALL) != target) die("waitpid");
  return status;
}

// Several send. The tracer holds one of the signals and lets it pass, or drops the others first.
static void held(int signal, void (*live)(void)) {
  spawn(live);
  if (ptrace(PTRACE_SEIZE, target, NULL, NULL) != 0) die("PTRACE_SEIZE");
  pid_t senders[SENDERS];
  pid_t truth = -1;
  const int passes = some(SENDERS - 1);
  const int is_held = some(1);
  for (int i = 0; i < SENDERS; i++) {
    senders[i] = sender(signal, 0);
    waitpid(senders[i], NULL, 0);
    if (i > 0 && is_held && i <= passes) continue;  // it queues behind the first
    const int status = wait_stop();
    if (!WIFSTOPPED(status)) die("no stop");
    siginfo_t info;
    if (ptrace(PTRACE_GETSIGINFO, target, NULL, &info) != 0) die("PTRACE_GETSIGINFO");
    if (is_held) {
      // The others are sent while the first is held: the second waits, the third is lost.
      for (int j = i + 1; j < SENDERS; j++) {
        senders[j] = sender(signal, 0);
        waitpid(senders[j], NULL, 0);
      }
      truth = info.si_pid;
      i = SENDERS;
    } else if (i == passes) {
      truth = info.si_pid;
      for (int j = i + 1; j < SENDERS; j++) senders[j] = senders[i];
      i = SENDERS;
    } else if (ptrace(PTRACE_CONT, target, NULL, 0) != 0) {
      die("PTRACE_CONT");
    }
  }
  if (ptrace(PTRACE_CONT, target, NULL, (void*)(intptr_t)signal) != 0) die("PTRACE_CONT");
  ended(live == live_traced_dumping ? -2 : truth, senders, SENDERS);
}

// The tracer drops a signal and injects one of its own.
static void injected(int dropped, int signal, void (*live)(void)) {
  spawn(live);
  if (ptrace(PTRACE_SEIZE, target, NULL, NULL) != 0) die("PTRACE_SEIZE");
  pid_t senders[2];
  senders[0] = sender(dropped, 0);
  waitpid(senders[0], NULL, 0);
  wait_stop();
  if (ptrace(PTRACE_CONT, target, NULL, 0) != 0) die("PTRACE_CONT");
  senders[1] = sender(SIGUSR1, 0);
  waitpid(senders[1], NULL, 0);
  wait_stop();
  if (ptrace(PTRACE_CONT, target, NULL, (void*)(intptr_t)signal) != 0) die("PTRACE_CONT");
  ended(live == live_traced_dumping ? -2 : getpid(), senders, 2);
}

static void live_blocking_term(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  ready();
  shared->is_ready = 0;
  while (!shared->is_ready) nap(100);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  linger();
}

// The same with a blocked signal, which stays pending until it is unblocked.
static void injected_blocked(int is_sent, int detaches) {
  spawn(live_blocking_term);
  while (shared->is_ready) nap(50);
  if (ptrace(PTRACE_SEIZE, target, NULL, NULL) != 0) die("PTRACE_SEIZE");
  pid_t senders[2] = {0, 0};
  if (is_sent) {
    // A signal is already pending: one of the two is lost.
    senders[0] = sender(SIGTERM, 0);
    waitpid(senders[0], NULL, 0);
  }
  senders[1] = sender(SIGUSR1, 0);
  waitpid(senders[1], NULL, 0);
  wait_stop();
  if (ptrace(PTRACE_CONT, target, NULL, (void*)(intptr_t)SIGTERM) != 0) die("PTRACE_CONT");
  nap(500);
  pid_t truth = is_sent ? senders[0] : getpid();
  if (detaches) {
    if (ptrace(PTRACE_INTERRUPT, target, NULL, NULL) != 0) die("PTRACE_INTERRUPT");
    wait_stop();
    shared->is_ready = 1;
    if (ptrace(PTRACE_DETACH, target, NULL, NULL) != 0) die("PTRACE_DETACH");
  } else {
    shared->is_ready = 1;
    wait_stop();
    siginfo_t info;
    if (ptrace(PTRACE_GETSIGINFO, target, NULL, &info) != 0) die("PTRACE_GETSIGINFO");
    truth = info.si_pid;
    if (ptrace(PTRACE_CONT, target, NULL, (void*)(intptr_t)SIGTERM) != 0) die("PTRACE_CONT");
  }
  ended(truth, senders, 2);
}

// Another process than the target's parent traces it, and detaches with a signal.
static void detached(void) {
  spawn(live_traced);
  pid_t senders[2];
  // The tracer's parent is the target's own parent, which the kernel will name as the sender.
  const pid_t tracer = fork();
  if (tracer == 0) {
    if (ptrace(PTRACE_SEIZE, target, NULL, NULL) != 0) _exit(1);
    shared->is_ready = 2;
    int status;
    waitpid(target, &status, __WALL);
    ptrace(PTRACE_CONT, target, NULL, 0);
    waitpid(target, &status, __WALL);
    ptrace(PTRACE_DETACH, target, NULL, (void*)(intptr_t)SIGTERM);
    _exit(0);
  }
  while (shared->is_ready != 2) nap(50);
  kill(target, SIGTERM);
  nap(2000);
  senders[0] = sender(SIGUSR1, 0);
  senders[1] = tracer;
  reap(senders, 2);
  ended(tracer, senders, 2);
}

// --- Routine signals that are blocked

static void on_signal(int number) { (void)number; }

static void live_waiting(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, core_signal);
  signal(core_signal, on_signal);
  sigprocmask(SIG_BLOCK, &set, NULL);
  ready();
  nap(some(1000));
  int number;
  sigwait(&set, &number);
  struct itimerval soon = {{0, 0}, {0, 1000}};
  setitimer(core_signal == SIGPROF ? ITIMER_PROF : ITIMER_REAL, &soon, NULL);
  sigset_t pending;
  do {
    sigpending(&pending);
  } while (!sigismember(&pending, core_signal));
  signal(core_signal, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  linger();
}

static void own_timer(int signal) {
  core_signal = signal;
  spawn(live_waiting);
  pid_t other = sender(signal, 500);
  reap(&other, 1);
  ended(0, &other, 1);
}

// --- Signals through a file

static void by_file(int signal, int is_default) {
  spawn(live_traced);
  int ends[2], gate[2];
  if (pipe(ends) != 0 || pipe(gate) != 0) die("pipe");
  const pid_t owner = fork();
  if (owner == 0) {
    // One process sets the owner, another one writes.
    close(gate[0]);
    if (fcntl(ends[0], F_SETOWN, target) != 0) _exit(1);
    if (!is_default && fcntl(ends[0], F_SETSIG, signal) != 0) _exit(1);
    if (fcntl(ends[0], F_SETFL, O_ASYNC) != 0) _exit(1);
    _exit(0);
  }
  reap(&owner, 1);
  const pid_t writer = fork();
  if (writer == 0) {
    prctl(PR_SET_NAME, "sender");
    if (write(ends[1], "x", 1) != 1) _exit(1);
    _exit(0);
  }
  reap(&writer, 1);
  close(ends[0]);
  close(ends[1]);
  close(gate[0]);
  close(gate[1]);
  ended(writer, &writer, 1);
}

// --- One sender, which must always be named

static void one(int signal) {
  core_signal = signal;
  has_threads = some(2);
  spawn(live_to_dump);
  pid_t by = sender(signal, some(200));
  reap(&by, 1);
  int status;
  if (waitpid(target, &status, 0) < 0) die("waitpid");
  truth_of_core();
  printf("ended %d %d sender\n", status, (int)by);
  fflush(stdout);
}

static void live_to_abort(void) {
  allow_core();
  ready();
  abort();
}

static void aborts(void) {
  spawn(live_to_abort);
  ended(-2, NULL, 0);
}

static int run(const char* way) {
  const int cores[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGFPE, SIGXCPU, SIGSYS};
  const int any_core = cores[some(5)];
  if (strcmp(way, "two-dump") == 0) return two_dump(any_core, 0, 2), 1;
  if (strcmp(way, "three-dump-threads") == 0) return two_dump(any_core, 3, 3), 1;
  if (strcmp(way, "held") == 0) return held(SIGTERM, live_traced), 1;
  if (strcmp(way, "held-dump") == 0) return held(any_core, live_traced_dumping), 1;
  if (strcmp(way, "injected") == 0) return injected(SIGTERM, SIGTERM, live_traced), 1;
  if (strcmp(way, "injected-dump") == 0)
    return injected(any_core, any_core, live_traced_dumping), 1;
  if (strcmp(way, "injected-blocked") == 0) return injected_blocked(0, 0), 1;
  if (strcmp(way, "injected-blocked-late") == 0) return injected_blocked(1, 0), 1;
  if (strcmp(way, "injected-blocked-detached") == 0) return injected_blocked(0, 1), 1;
  if (strcmp(way, "detached") == 0) return detached(), 1;
  if (strcmp(way, "own-timer") == 0) return own_timer(some(1) ? SIGALRM : SIGPROF), 1;
  if (strcmp(way, "by-file") == 0) {
    const int signals[] = {SIGKILL, SIGTERM, SIGIO, SIGSEGV, SIGQUIT, SIGRTMIN + 3};
    return by_file(signals[some(5)], 0), 1;
  }
  if (strcmp(way, "by-file-default") == 0) return by_file(SIGIO, 1), 1;
  if (strcmp(way, "one") == 0) {
    const int signals[] = {SIGQUIT, SIGABRT, SIGTERM, SIGKILL, SIGSEGV, SIGALRM, SIGRTMIN + 1};
    return one(signals[some(6)]), 1;
  }
  if (strcmp(way, "abort") == 0) return aborts(), 1;
  return 0;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  seed = (unsigned)getpid() ^ (unsigned)time(NULL);
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int i = atoi(arguments[2]); i > 0; i--) {
    if (!run(arguments[1])) {
      fprintf(stderr, "no such way: %s\n", arguments[1]);
      return 2;
    }
  }
  return 0;
}
