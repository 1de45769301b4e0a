#include "shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"

static int64_t MicrosecondsOf(struct timeval time) {
  return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

bool PeekDeath(int which, pid_t pid, int more, Death* death) {
  siginfo_t info = {.si_pid = 0};
  struct rusage usage;
  errno = 0;
  // waitid(2) of the C library leaves out the usage, which the system call has.
  const int options = WEXITED | WNOWAIT | more;
  if (syscall(SYS_waitid, which, pid, &info, options, &usage) != 0 || info.si_pid == 0)
    return false;
  const int signal = info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
  *death = (Death){
      .usage = {.peak_kib = usage.ru_maxrss,
                .user_us = MicrosecondsOf(usage.ru_utime),
                .system_us = MicrosecondsOf(usage.ru_stime)},
      .pid = info.si_pid,
      .status = info.si_code == CLD_EXITED ? info.si_status << 8 : signal,
  };
  return true;
}

void Reap(pid_t pid) { waitpid(pid, NULL, WNOHANG); }

void CloseFrom(int first) {
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;  // Linux 5.9
  // Not all numbers up to the limit: that may be a thousand millions.
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == NULL) return;
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    const int fd = atoi(entry->d_name);
    if (fd >= first && fd != dirfd(folder)) close(fd);
  }
  closedir(folder);
}

static void PathOf(char* path, size_t room, const char* id) { snprintf(path, room, "end.%s", id); }

void ShimStore(const char* id, const ShimReport* report) {
  char path[kMostIdBytes + 8], temporary[kMostIdBytes + 16];
  PathOf(path, sizeof path, id);
  snprintf(temporary, sizeof temporary, "new.%s", id);
  const int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  const bool is_whole = write(file, report, sizeof *report) == sizeof *report && fsync(file) == 0;
  close(file);
  if (!is_whole || rename(temporary, path) < 0) unlink(temporary);
}

int ShimTake(const char* id, ShimReport* report) {
  char path[kMostIdBytes + 8];
  PathOf(path, sizeof path, id);
  const int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return errno;
  const bool is_whole = read(file, report, sizeof *report) == sizeof *report;
  close(file);
  unlink(path);
  return is_whole ? 0 : EIO;
}

void ShimForget(const char* id) {
  char path[kMostIdBytes + 8];
  PathOf(path, sizeof path, id);
  unlink(path);
}
