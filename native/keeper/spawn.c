// One idea: from a fork to an exec: what a process gets, and what it must not inherit.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"
#include "shim.h"

enum {
  kReservedFiles = 32,
  kLockTries = 100,
  kLookAgainUs = 20000,
  kUsualFiles = 1024,
  kHugeFiles = 1 << 19,  // the highest limit that systemd gives, unless somebody says otherwise
  // How long a disk may take to open a log, before a run starts that may have to wait for it later.
  kLongestOpenMs = 2000,
};

struct rlimit inherited_files;

void ReserveFiles(bool on) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) < 0) return;
  files.rlim_cur = files.rlim_max;
  if (on)
    files.rlim_cur -= files.rlim_max > 2 * kReservedFiles ? kReservedFiles : files.rlim_max / 2;
  setrlimit(RLIMIT_NOFILE, &files);
}

typedef struct {
  int out;
  int err;
  int failure;     // the pipe for a StartFailure; closed by exec
  int go;          // see Go()
  int reports[2];  // of a shim
  int logged[2];   // a log process says whether it can write: an errno
} ChildFiles;

static void Fail(const ChildFiles* files, const char* step, int error) {
  StartFailure failure = {.error = error};
  snprintf(failure.step, sizeof failure.step, "%s", step);
  if (write(files->failure, &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

// A child may wait for long before its exec, for a dead disk for example. If the keeper dies in the
// meantime, it must have neither its lock, nor its socket, nor the connections of its clients.
static void KeepOnly(ChildFiles* files) {
  int* const kept[] = {&files->reports[0], &files->reports[1], &files->failure,  &files->go,
                       &files->out,        &files->err,        &files->logged[0]};
  enum { kFirst = kShimReadFd, kEnd = kFirst + sizeof kept / sizeof *kept };
  for (int i = 0; i < kEnd - kFirst; i++) {
    const int away = *kept[i] < 0 ? -1 : fcntl(*kept[i], F_DUPFD, kEnd);
    if (*kept[i] >= 0 && away < 0) Fail(files, "descriptors", errno);
    *kept[i] = away;
  }
  for (int i = 0; i < kEnd - kFirst; i++) {
    if (*kept[i] < 0)
      close(kFirst + i);
    else
      *kept[i] = dup3(*kept[i], kFirst + i, O_CLOEXEC);
  }
  CloseFrom(kEnd);
}

// The keeper may die, before or after the journal knows us: then the journal says whether the next
// one will know us, or start this run anew.
static void AwaitGo(const Run* run, const ChildFiles* files) {
  char byte;
  ssize_t size;
  while ((size = read(files->go, &byte, 1)) < 0 && errno == EINTR) continue;
  if (size != 1 && !JournalKnowsUs(run->id)) _exit(126);
}

void Go(Run* run) {
  // A pipe without a reader: it was killed already.
  if (write(run->go_fd, "", 1) < 0 && errno != EPIPE) Die("go");
  CloseFd(&run->go_fd);
}

// Never follows a link, and never waits for a reader of a FIFO. -1: errno says why not.
static int OpenLog(int folder, const char* name) {
  const int file =
      openat(folder, name,
             O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
  struct stat status;
  if (file < 0) return -1;
  if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode)) {
    close(file);
    errno = EINVAL;
    return -1;
  }
  fcntl(file, F_SETFL, O_APPEND);
  return file;
}

static bool IsAt(int file, int folder, const char* name, struct stat* status) {
  struct stat now;
  return fstat(file, status) == 0 && fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
         now.st_ino == status->st_ino && now.st_dev == status->st_dev;
}

// Of several that start at once, one rotates.
static int OpenRotated(const char* path, const StartSpec* spec) {
  const char* name;
  const int folder = OpenFolderOf(path, &name);  // until the exec
  if (folder < 0) return -1;
  for (int tries = 0;; tries++) {
    struct stat status;
    const int file = OpenLog(folder, name);
    if (file < 0 || spec->log_most <= 0 || tries == kLockTries) return file;
    const bool is_ours = flock(file, LOCK_EX | LOCK_NB) == 0;
    if (is_ours && IsAt(file, folder, name, &status)) {
      if (status.st_size >= spec->log_most) {
        RotateFile(folder, name, (int)spec->log_keep);
      } else {
        flock(file, LOCK_UN);
        return file;
      }
    }
    close(file);
    if (!is_ours) usleep(10000);
  }
}

static void TakeSignalsAs(void (*handler)(int)) {
  for (int number = 1; number < NSIG; number++) signal(number, handler);
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

// What its log process cannot write would keep a run waiting: better that it does not start.
static void AwaitLog(const ChildFiles* files) {
  struct pollfd told = {.fd = files->logged[0], .events = POLLIN};
  int error = 0;
  if (poll(&told, 1, kLongestOpenMs) <= 0) return;
  if (read(files->logged[0], &error, sizeof error) == sizeof error && error != 0)
    Fail(files, "log", error);
}

// Not in the keeper: a disk may not answer.
static void OpenLogs(ChildFiles* files, const StartSpec* spec) {
  if (files->logged[0] >= 0) AwaitLog(files);
  if (spec->out != NULL && (files->out = OpenRotated(spec->out, spec)) < 0)
    Fail(files, "stdout", errno);
  const bool is_same = spec->out != NULL && spec->err != NULL && strcmp(spec->out, spec->err) == 0;
  if (is_same) files->err = files->out;
  if (spec->err != NULL && !is_same && (files->err = OpenRotated(spec->err, spec)) < 0)
    Fail(files, "stderr", errno);
}

// Node.js raises the limit of itself, and so of all that it starts, to the highest. The usual one
// is what select(2) can take; a program that can do with more raises it by itself. Who has chosen a
// lower one for all of us meant it.
static void LimitOpenFiles(const ChildFiles* files, const StartSpec* spec) {
  struct rlimit limit = inherited_files;
  if (spec->open_files >= 0) {
    limit.rlim_cur = (rlim_t)spec->open_files;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_max = limit.rlim_cur;
  } else if (limit.rlim_cur == limit.rlim_max && limit.rlim_max >= kHugeFiles) {
    limit.rlim_cur = kUsualFiles;
  }
  // Somebody may have lowered our own limit since: that one remains.
  if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && spec->open_files >= 0)
    Fail(files, "openFiles", errno);
}

static void Inherit(const ChildFiles* files, const StartSpec* spec) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0) Fail(files, "stdin", errno);
  // Not 0, 1 or 2: the keeper keeps these open.
  if (dup2(files->out >= 0 ? files->out : null, 1) < 0) Fail(files, "stdout", errno);
  if (dup2(files->err >= 0 ? files->err : null, 2) < 0) Fail(files, "stderr", errno);
  // As far as it is allowed: to lower them takes privileges.
  WriteFile("/proc/self/oom_score_adj", "0", 0);
  setpriority(PRIO_PROCESS, 0, 0);
  umask((mode_t)spec->mask);
}

static void DropPrivileges(const ChildFiles* files, const StartSpec* spec) {
  if (spec->gid >= 0 || spec->uid >= 0) {
    if (spec->has_groups ? setgroups(spec->group_count, spec->groups) < 0
                         : geteuid() == 0 && setgroups(0, NULL) < 0)
      Fail(files, "group", errno);
  }
  if (spec->gid >= 0 && setresgid((gid_t)spec->gid, (gid_t)spec->gid, (gid_t)spec->gid) < 0)
    Fail(files, "group", errno);
  if (spec->uid >= 0 && setresuid((uid_t)spec->uid, (uid_t)spec->uid, (uid_t)spec->uid) < 0)
    Fail(files, "user", errno);
  if (spec->refuses_root && (getuid() == 0 || geteuid() == 0)) Fail(files, "root", EPERM);
}

static const char* PathOf(char** environment) {
  for (char** at = environment; *at != NULL; at++) {
    if (strncmp(*at, "PATH=", 5) == 0) return *at + 5;
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

// As execvpe(3), but with the PATH of the new environment.
static int Execute(const char* file, char** arguments, char** environment) {
  if (strchr(file, '/') != NULL) {
    execve(file, arguments, environment);
    return errno;
  }
  int error = ENOENT;
  char path[PATH_MAX];
  for (const char* at = PathOf(environment);; at++) {
    const size_t length = strcspn(at, ":");
    if (snprintf(path, sizeof path, "%.*s/%s", (int)length, at, file) < (int)sizeof path &&
        length > 0) {
      execve(path, arguments, environment);
      if (errno != ENOENT && errno != ENOTDIR) error = errno;
      if (error != ENOENT && error != EACCES) return error;
    }
    at += length;
    if (*at == '\0') return error;
  }
}

static void ChildMain(const Run* run, const StartSpec* spec, ChildFiles* files) {
  char path[PATH_MAX];
  if (run->cgroup != NULL) {
    snprintf(path, sizeof path, "%s/cgroup.procs", run->cgroup);
    const int error = WriteFile(path, "0", 0);
    if (error != 0) Fail(files, "cgroup", error);
  }
  if (setsid() < 0) Fail(files, "session", errno);
  TakeSignalsAs(SIG_DFL);  // from now on it may wait for a disk, and can be stopped
  OpenLogs(files, spec);
  Inherit(files, spec);
  char** const environment = spec->environment_file == NULL
                                 ? spec->environment
                                 : AddEnvironmentFile(spec->environment_file, spec->environment);
  if (environment == NULL) Fail(files, "environment", errno);
  if (spec->pidfile != NULL) PidfileWrite(spec->pidfile);
  LimitOpenFiles(files, spec);
  DropPrivileges(files, spec);
  if (chdir(spec->directory) < 0) Fail(files, "cwd", errno);
  Fail(files, "exec", Execute(spec->file, spec->arguments, environment));
}

// The number of bytes that the keeper has not read.
static int Unread(int pipe) {
  int count = 0;
  return ioctl(pipe, FIONREAD, &count) < 0 ? 0 : count;
}

// The parent of a run without a cgroup, and of all that it leaves behind: it ends with the last of
// them. It survives the keeper; the next one reads the pipe from /proc/PID/fd/3.
static void ShimMain(const Run* run, const StartSpec* spec, ChildFiles* files) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  TakeSignalsAs(SIG_IGN);
  const pid_t child = fork();
  if (child < 0) Fail(files, "fork", errno);
  if (child == 0) ChildMain(run, spec, files);
  ShimReport report = {.pid = child, .boot_ms = BootMs()};
  report.ticks = TicksOf(child);
  if (write(kShimWriteFd, &report, sizeof report) < 0) _exit(126);
  prctl(PR_SET_NAME, kShimName);
  CloseFrom(kShimWriteFd + 1);  // among them the pipe whose end means that exec succeeded
  const int64_t began = report.boot_ms;
  for (Death death;;) {
    if (!PeekDeath(P_ALL, 0, 0, &death)) {
      if (errno == EINTR) continue;
      break;
    }
    if (death.pid == child) {
      // Whether it has executed anything can be seen until it is reaped.
      Exec exec;
      while ((exec = ExecOf(child, 0)) == kUnseen)
        usleep(kLookAgainUs);  // the system has no descriptor left, for example
      report.kind = exec == kBeforeExec ? kEndedBeforeExec : kEndedAfterExec;
      report.status = death.status;
      report.ended_ms = WallMs();
      report.boot_ms = BootMs();
      report.lived_ms = report.boot_ms - began;
      report.usage = death.usage;
      if (write(kShimWriteFd, &report, sizeof report) < 0) _exit(126);
    }
    Reap(death.pid);
  }
  // A keeper that is dead never reads it: leave it in a file for the next one.
  for (int wait = 1; Unread(kShimReadFd) > 0 && wait < 256; wait *= 2)
    usleep((useconds_t)wait * 1000);
  if (Unread(kShimReadFd) > 0) ShimStore(run->id, &report);
  _exit(0);
}

// The child reads and writes its FIFO, so that it never gets SIGPIPE; we keep what is in it.
static int OpenFifo(Run* run) {
  if (mkfifo(run->log_fifo, 0600) < 0 && errno != EEXIST) return -1;
  if ((errno = LogOpen(run)) != 0) return -1;
  return open(run->log_fifo, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
}

static void CloseChildFiles(ChildFiles* files) {
  if (files->err != files->out) CloseFd(&files->err);
  CloseFd(&files->out);
  CloseFd(&files->failure);
  CloseFd(&files->go);
  CloseFd(&files->reports[1]);
  CloseFd(&files->logged[0]);
  CloseFd(&files->logged[1]);
}

static int FailHere(Run* run, ChildFiles* files, const char* step) {
  const int error = errno;
  free(run->step);
  run->step = Copy(step);
  CloseChildFiles(files);
  CloseFd(&run->go_fd);
  CloseFd(&run->exec_fd);
  CloseFd(&run->shim_fd);
  if (run->log_fd >= 0) LogEnded(run, true);
  return error == 0 ? EIO : error;
}

int SpawnRun(Run* run, const StartSpec* spec) {
  ChildFiles files = {
      .out = -1, .err = -1, .failure = -1, .go = -1, .reports = {-1, -1}, .logged = {-1, -1}};
  if (run->log_fifo != NULL) {
    files.out = files.err = OpenFifo(run);
    if (files.out < 0) return FailHere(run, &files, "log");
    if (pipe2(files.logged, O_CLOEXEC) < 0) return FailHere(run, &files, "pipe");
  }
  int failures[2], go[2];
  if (pipe2(failures, O_CLOEXEC | O_NONBLOCK) < 0) return FailHere(run, &files, "pipe");
  run->exec_fd = failures[0];
  files.failure = failures[1];
  if (pipe2(go, O_CLOEXEC) < 0) return FailHere(run, &files, "pipe");
  files.go = go[0];
  run->go_fd = go[1];
  if (run->cgroup == NULL) {
    if (pipe2(files.reports, O_CLOEXEC | O_NONBLOCK) < 0) return FailHere(run, &files, "pipe");
    run->shim_fd = files.reports[0];
  }
  if (run->cgroup != NULL && (errno = CgroupMake(run->cgroup)) != 0) {
    const int result = FailHere(run, &files, "cgroup");
    free(run->cgroup);
    run->cgroup = NULL;  // it is not ours
    return result;
  }
  ReserveFiles(false);
  const pid_t pid = fork();
  if (pid == 0) {
    KeepOnly(&files);
    AwaitGo(run, &files);
    if (run->cgroup == NULL) ShimMain(run, spec, &files);
    ChildMain(run, spec, &files);
  }
  if (pid < 0) {
    const int error = FailHere(run, &files, "fork");
    if (run->cgroup != NULL) CgroupRemove(run->cgroup);
    return error;
  }
  LogSpawn(run, files.logged[1]);
  CloseChildFiles(&files);
  run->started_ms = WallMs();
  run->started_boot_ms = BootMs();
  run->has_left = true;
  run->is_ours = true;
  if (run->cgroup == NULL) {
    run->shim = pid;
    run->shim_ticks = TicksOf(pid);
  } else {
    run->pid = pid;
    run->start_ticks = TicksOf(pid);
  }
  return 0;
}
