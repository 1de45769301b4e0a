// The log process of a run: moves what comes through its FIFO into a file, which it rotates by
// size.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper.h"
#include "shim.h"

enum {
  kPieceBytes = 1 << 16,
  kAgainAfterUs = 200000,
  kLogEveryMs = 500,
  // How long what nobody adds to any more waits for a file that cannot be written.
  kGiveUpMs = 10000,
};

// A number that is free, because a rotation was interrupted, is taken first: no gap remains.
void RotateFile(int folder, const char* name, int keep) {
  char from[PATH_MAX], to[PATH_MAX];
  struct stat found;
  int last = 1;
  for (; last < keep; last++) {
    snprintf(to, sizeof to, "%s.%d", name, last);
    if (fstatat(folder, to, &found, AT_SYMLINK_NOFOLLOW) < 0) break;
  }
  for (int i = keep == 0 ? 0 : last; i > 0; i--) {
    snprintf(to, sizeof to, "%s.%d", name, i);
    if (i > 1)
      snprintf(from, sizeof from, "%s.%d", name, i - 1);
    else
      snprintf(from, sizeof from, "%s", name);
    renameat(folder, from, folder, to);
  }
  if (keep == 0) unlinkat(folder, name, 0);
}

// The end of the file, for us alone: other runs may have the same one. -1: errno says why not.
static int OpenEnd(int folder, const char* name) {
  for (;;) {
    // splice(2) refuses files opened with O_APPEND.
    const int file = openat(
        folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
    struct stat status, now;
    if (file < 0) return -1;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
      while (flock(file, LOCK_EX) < 0 && errno == EINTR) continue;
      // Somebody may have rotated it before we had the lock.
      if (fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == status.st_ino &&
          now.st_dev == status.st_dev) {
        lseek(file, 0, SEEK_END);
        return file;
      }
    } else {
      close(file);
      errno = EINVAL;
      return -1;
    }
    close(file);
  }
}

// Of the log process: another descriptor of its FIFO, which was opened before the last writer had
// gone unless all of the run had ended; only then poll(2) tells that nobody can write any more.
static int watched = -1;
static bool is_run_over;
// Since when that is so and the file cannot be written; 0: it is not so.
static int64_t stuck_boot_ms;

// Waits for a file that cannot be written, because the disk is full for example. A writer waits in
// the meantime; what is left of one that is gone does not keep us for ever.
static bool MayTryAgain(void) {
  struct pollfd writers = {.fd = watched};
  const bool is_gone =
      is_run_over || (poll(&writers, 1, 0) > 0 && (writers.revents & POLLHUP) != 0);
  if (!is_gone) stuck_boot_ms = 0;
  if (is_gone && stuck_boot_ms == 0) stuck_boot_ms = BootMs();
  if (is_gone && BootMs() - stuck_boot_ms >= kGiveUpMs) return false;
  usleep(kAgainAfterUs);
  return true;
}

// Where a file system cannot splice.
static ssize_t Copied(int fifo, int file) {
  char bytes[4096];
  const ssize_t count = read(fifo, bytes, sizeof bytes);
  for (ssize_t written = 0; written < count;) {
    const ssize_t more = write(file, bytes + written, (size_t)(count - written));
    if (more > 0) {
      written += more;
    } else if (!MayTryAgain()) {
      errno = EIO;
      return -1;
    }
  }
  return count;
}

// As read(2): 0 when nobody can write any more, -1 with EAGAIN when there is nothing.
static ssize_t MovePiece(int fifo, const Run* run) {
  const char* name;
  int folder = OpenFolderOf(run->log_file, &name);
  int file = folder < 0 ? -1 : OpenEnd(folder, name);
  // What splice takes from the pipe is in the file: SIGKILL cannot come between.
  ssize_t count =
      file < 0 ? -1
               : splice(fifo, NULL, file, NULL, kPieceBytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (file >= 0 && count < 0 && errno == EINVAL) count = Copied(fifo, file);
  const int error = errno;
  if (count > 0 && run->log_most > 0 && lseek(file, 0, SEEK_CUR) >= run->log_most)
    RotateFile(folder, name, run->log_keep);
  CloseFd(&file);
  CloseFd(&folder);
  errno = error;
  return count;
}

// Nothing is in it, and nobody can write any more.
static bool IsOver(int fifo) {
  int copy[2];
  if (pipe2(copy, O_CLOEXEC) < 0) return false;
  const bool is_over = tee(fifo, copy[1], 1, SPLICE_F_NONBLOCK) == 0;
  close(copy[0]);
  close(copy[1]);
  return is_over;
}

// Why it cannot write, or 0, to a run that waits for that; it may not wait any more.
static void TellOnce(int* told, int error) {
  if (*told >= 0 && write(*told, &error, sizeof error) < 0) errno = 0;
  CloseFd(told);
}

static int LogMain(const Run* run, int told) {
  prctl(PR_SET_NAME, "exitwatch-log");
  setsid();
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  // Without O_NONBLOCK this would wait for a writer, and there may never be one again.
  const int in = open(run->log_fifo, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (in < 0) return 1;
  // One at a time, also if an earlier keeper started the other one.
  while (flock(in, LOCK_EX) < 0 && errno == EINTR) continue;
  for (;;) {
    const ssize_t count = MovePiece(in, run);
    const int error = count >= 0 || errno == EAGAIN || errno == EINTR ? 0 : errno;
    const bool is_empty = count < 0 && errno == EAGAIN;
    TellOnce(&told, error);
    if (count == 0) return 0;
    if (count > 0) stuck_boot_ms = 0;
    if (is_empty) {
      struct pollfd readable = {.fd = in, .events = POLLIN};
      poll(&readable, 1, -1);
    } else if (error != 0) {
      if (IsOver(in) || !MayTryAgain()) return 0;
    }
  }
}

int LogOpen(Run* run) {
  run->log_fd = open(run->log_fifo, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (run->log_fd < 0 || fstat(run->log_fd, &status) < 0) return errno;
  if (S_ISFIFO(status.st_mode) && status.st_uid == geteuid()) return 0;
  CloseFd(&run->log_fd);
  return EINVAL;
}

void LogSpawn(Run* run, int told) {
  if (run->log_fd < 0 || run->log_pid != 0) return;
  const pid_t pid = fork();
  if (pid == 0) {
    enum { kWatched = 3, kTold, kEnd };
    const int away = told < 0 ? -1 : fcntl(told, F_DUPFD, kEnd);
    watched = dup2(run->log_fd, kWatched);
    told = away < 0 ? -1 : dup2(away, kTold);
    CloseFrom(told < 0 ? kTold : kEnd);
    is_run_over = !RunIsAlive(run) && !run->has_left;
    _exit(LogMain(run, told));
  }
  if (pid > 0) run->log_pid = pid;
  run->log_next_boot_ms = BootMs() + kLogEveryMs;
}

void LogEnded(Run* run, bool is_complete) {
  run->log_pid = 0;
  if (!is_complete) return;  // somebody killed it: another one follows
  CloseFd(&run->log_fd);
  unlink(run->log_fifo);
}
