// A pidfile with the identity of its process beside it, as writePidfile() of src/process/pidfile.ts
// writes them.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper.h"

enum { kIdentityBytes = 400, kPidfsMagic = 0x50494446 };

// 0: before Linux 6.9.
static uint64_t OwnInode(void) {
  struct statfs system;
  struct stat status;
  const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
  const bool has_inode = pidfd >= 0 && fstatfs(pidfd, &system) == 0 &&
                         system.f_type == kPidfsMagic && fstat(pidfd, &status) == 0;
  if (pidfd >= 0) close(pidfd);
  return has_inode ? status.st_ino : 0;
}

// src/identity/process-identity.ts.
static void Identify(char* text) {
  enum { kNumberBytes = 24 };
  const long long ticks = TicksOf(getpid());
  const unsigned long long inode = OwnInode();
  char unique[kNumberBytes], inode_text[kNumberBytes] = "null", space_text[kNumberBytes] = "null";
  char space_id[kNumberBytes] = "";
  snprintf(unique, sizeof unique, "t%lld", ticks);
  if (inode != 0) {
    snprintf(unique, sizeof unique, "%llu", inode);
    snprintf(inode_text, sizeof inode_text, "%llu", inode);
  }
  struct stat space;
  if (stat("/proc/self/ns/pid", &space) == 0 && space.st_ino != 0xEFFFFFFC) {  // the host's
    snprintf(space_text, sizeof space_text, "%llu", (unsigned long long)space.st_ino);
    snprintf(space_id, sizeof space_id, "n%s", space_text);
  }
  const char* const boot = BootId();
  snprintf(text, kIdentityBytes,
           "{\"id\":\"%.8s%.4s%s-%d-%s\",\"pid\":%d,\"startTicks\":%lld,\"bootId\":\"%s\","
           "\"inode\":%s,\"pidNamespace\":%s}\n",
           boot, boot + 9, space_id, getpid(), unique, getpid(), ticks, boot, inode_text,
           space_text);
}

// A reader sees the old file or the new one.
static int Replace(int folder, const char* name, const char* text) {
  char temporary[PATH_MAX];
  uint64_t random = 0;
  if (getrandom(&random, 6, 0) != 6) return EIO;
  snprintf(temporary, sizeof temporary, ".%s.%012llx", name, (unsigned long long)random);
  const int file =
      openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  fchmod(file, 0600);  // whatever the umask of the run is
  const size_t size = strlen(text);
  int error = write(file, text, size) == (ssize_t)size ? 0 : ENOSPC;
  if (error == 0 && fsync(file) < 0) error = errno;
  close(file);
  if (error == 0 && renameat(folder, temporary, folder, name) < 0) error = errno;
  if (error != 0) unlinkat(folder, temporary, 0);
  return error;
}

static void Sync(int folder) {
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

void PidfileWrite(const char* path) {
  char text[kIdentityBytes], beside[PATH_MAX];
  const char* name;
  int folder = OpenFolderOf(path, &name);
  if (folder < 0) return;
  snprintf(beside, sizeof beside, "%s.id", name);
  Identify(text);
  // In this order: an identity beside another pid is ignored.
  int error = Replace(folder, beside, text);
  snprintf(text, sizeof text, "%d", getpid());
  if (error == 0) error = Replace(folder, name, text);
  if (error == 0) Sync(folder);
  CloseFd(&folder);
}
