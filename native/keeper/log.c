// The log process of a run: moves what comes through its FIFO into a file, which it rotates by
// size.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper.h"

enum { kPieceBytes = 1 << 16 };

// splice(2) refuses files opened with O_APPEND.
static int OpenEnd(const char* path) {
  const int file =
      open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
  struct stat status;
  if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode)) return -1;
  lseek(file, 0, SEEK_END);
  return file;
}

static ssize_t Copied(int fifo, int file) {
  char bytes[4096];
  const ssize_t count = read(fifo, bytes, sizeof bytes);
  for (ssize_t written = 0; written < count;) {
    const ssize_t more = write(file, bytes + written, (size_t)(count - written));
    if (more > 0)
      written += more;
    else
      usleep(200000);
  }
  return count;
}

int LogMain(const char* fifo, const char* path, int64_t most, int keep) {
  prctl(PR_SET_NAME, "exitwatch-log");
  setsid();
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  // Without O_NONBLOCK this would wait for a writer, and there may never be one again.
  const int in = open(fifo, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (in < 0 || fcntl(in, F_SETFL, 0) < 0) return 1;
  // One at a time, also if an earlier keeper started the other one.
  while (flock(in, LOCK_EX) < 0 && errno == EINTR) continue;
  bool can_splice = true;
  int out = OpenEnd(path);
  if (out < 0) return 1;
  for (;;) {
    // What splice takes from the pipe is in the file: SIGKILL cannot come between.
    const ssize_t count =
        can_splice ? splice(in, NULL, out, NULL, kPieceBytes, SPLICE_F_MOVE) : Copied(in, out);
    if (count == 0) return 0;
    if (count < 0 && errno == EINVAL && can_splice) {
      can_splice = false;
    } else if (count < 0 && errno != EINTR) {
      usleep(200000);  // the disk is full, for example: the writer waits in the meantime
    } else if (count > 0 && most > 0 && lseek(out, 0, SEEK_CUR) >= most) {
      close(out);
      RotateFile(path, keep);
      while ((out = OpenEnd(path)) < 0) usleep(200000);
    }
  }
}
