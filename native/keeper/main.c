#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "keeper.h"
#include "shim.h"

enum { kInUse = 75, kIdleMs = 10000 };

struct Keeper keeper = {
    .listening = -1, .lock = -1, .journal = -1, .signals = -1, .epoll = -1, .before = -1};

void Die(const char* what) {
  fprintf(stderr, "exitwatch-keeper: %s: %s\n", what, strerror(errno));
  exit(1);
}

void* Need(void* memory) {
  if (memory == NULL) Die("memory");
  return memory;
}

char* Copy(const char* text) { return Need(strdup(text)); }

void CloseFd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// The folder must be ours alone: who can write there decides what we believe.
static void EnterFolder(const char* path) {
  struct stat status;
  if (chdir(path) < 0 || stat(".", &status) < 0) Die(path);
  if (status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
    errno = EPERM;
    Die(path);
  }
  keeper.lock = open("lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (keeper.lock < 0) Die("lock");
  if (flock(keeper.lock, LOCK_EX | LOCK_NB) < 0) exit(kInUse);
}

// Beside the old one until it works; a path relative to the folder has no limit of 107 bytes.
static void Listen(void) {
  struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket.new"};
  unlink(name.sun_path);
  keeper.listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (keeper.listening < 0 || bind(keeper.listening, (struct sockaddr*)&name, sizeof name) < 0 ||
      chmod(name.sun_path, 0600) < 0 || listen(keeper.listening, kMostClients) < 0 ||
      rename(name.sun_path, "socket") < 0)
    Die("socket");
}

static void TakeSignals(void) {
  sigset_t taken;
  sigfillset(&taken);
  sigdelset(&taken, SIGPIPE);  // of our own writes: not to be passed on
  sigprocmask(SIG_SETMASK, &taken, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  keeper.signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  keeper.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (keeper.signals < 0 || keeper.epoll < 0) Die("signalfd");
}

static void TakeResources(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32768);  // so that large buffers are given back
#endif
  getrlimit(RLIMIT_NOFILE, &inherited_files);
  struct rlimit most = {inherited_files.rlim_max, inherited_files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &most);
}

static void LetGo(void) {
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; fd++) dup2(null, fd);
  if (null > 2) close(null);
}

static int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int Loop(bool is_init) {
  int64_t idle_since = BootMs();
  for (;;) {
    const int wait = IsGuard() ? GuardTick(RunsTick()) : RunsTick();
    if (IsGuard()) {
      if (GuardStatus() >= 0) return GuardStatus();
    } else if (is_init && keeper.main_pid == 0) {
      return ExitCode(keeper.main_status);
    }
    // Who is connected may want to start something: then nobody else could.
    if (keeper.is_leaving && !IsGuard() && !RunsAlive() && ServerClients() == 0) return 0;
    // What is over is in the journal: the next keeper tells it.
    const bool is_idle = !is_init && ServerClients() == 0 && RunCount() == 0;
    if (!is_idle) idle_since = BootMs();
    if (BootMs() - idle_since >= kIdleMs) return 0;
    ServerPoll(!is_idle ? wait : wait < 0 || wait > kIdleMs ? kIdleMs : wait);
  }
}

typedef enum { kDaemon, kInit, kGuard } Mode;

static int Keep(char** arguments, Mode mode) {
  const bool is_init = mode != kDaemon;
  char** const command = is_init ? arguments + 1 : NULL;
  CloseFrom(3);
  if (!is_init) setsid();
  keeper.mask = umask(077);
  TakeSignals();
  TakeResources();
  prctl(PR_SET_NAME, "exitwatch-keepr");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  keeper.before = is_init ? open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  EnterFolder(arguments[0]);
  if ((errno = JournalOpen()) != 0) Die("runs");
  Listen();
  ServerInit();
  RunsTakeStock();
  if (mode == kGuard) {
    GuardBegin(command);
  } else if (is_init) {
    StartMain(command);
    if (keeper.main_pid < 0) Die("fork");
    CloseFd(&keeper.before);
  } else {
    if (write(1, "ready\n", 6) < 0) Die("stdout");
    LetGo();
  }
  return Loop(is_init);
}

// @param command what is guarded; NULL: nothing is
static int Resume(int memory, char** command) {
  TakeSignals();
  TakeResources();
  prctl(PR_SET_NAME, "exitwatch-keepr");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  UpgradeResume(memory);
  const bool is_init = keeper.main_pid != 0 || command != NULL;
  ServerInit();
  if (command != NULL) GuardResume(command, keeper.taken_over);
  RunsReap();
  return Loop(is_init);
}

// Whether systemd has delegated a cgroup: Node.js cannot read extended attributes.
static int IsDelegated(const char* folder) {
  char value[2] = "";
  return (getxattr(folder, "trusted.delegate", value, 1) == 1 ||
          getxattr(folder, "user.delegate", value, 1) == 1) &&
                 value[0] == '1'
             ? 0
             : 1;
}

// For who has no addon: the lock is that of the open file, which stays open there.
static int LockInput(void) {
  if (flock(0, LOCK_EX | LOCK_NB) == 0) return 0;
  return errno == EWOULDBLOCK ? kInUse : 1;
}

int main(int count, char** arguments) {
  int64_t number;
  if (count == 3 && strcmp(arguments[1], "keep") == 0) return Keep(arguments + 2, kDaemon);
  if (count > 3 && strcmp(arguments[1], "init") == 0) return Keep(arguments + 2, kInit);
  if (count > 3 && strcmp(arguments[1], "guard") == 0) return Keep(arguments + 2, kGuard);
  if (count >= 3 && strcmp(arguments[1], "resume") == 0 && ParseNumber(arguments[2], &number))
    return Resume((int)number, count > 3 ? arguments + 3 : NULL);
  if (count == 2 && strcmp(arguments[1], "lock") == 0) return LockInput();
  if (count == 2 && strcmp(arguments[1], "check") == 0) return 0;
  if (count == 3 && strcmp(arguments[1], "check") == 0) return strcmp(arguments[2], "guard") != 0;
  if (count == 3 && strcmp(arguments[1], "is-delegated") == 0) return IsDelegated(arguments[2]);
  if (count == 2 && strcmp(arguments[1], "--version") == 0) {
    puts("exitwatch-keeper " KEEPER_VERSION);
    return 0;
  }
  fprintf(stderr,
          "usage: exitwatch-keeper keep FOLDER\n"
          "       exitwatch-keeper init FOLDER COMMAND [ARGUMENT]...\n"
          "       exitwatch-keeper guard FOLDER COMMAND [ARGUMENT]...\n"
          "exitwatch starts it by itself; see docs/supervisor.md\n");
  return 2;
}
