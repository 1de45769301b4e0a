#include "linux/namespaces.h"

#include <sys/stat.h>

namespace exitwatch {

namespace {

constexpr ino_t kInitialUser = 0xEFFFFFFD;
constexpr ino_t kInitialPid = 0xEFFFFFFC;

bool IsInode(const char* path, ino_t inode) {
  struct stat file;
  return stat(path, &file) != 0 || file.st_ino == inode;
}

}  // namespace

bool InInitialPidNamespace() { return IsInode("/proc/self/ns/pid", kInitialPid); }

bool InInitialUserNamespace() { return IsInode("/proc/self/ns/user", kInitialUser); }

}  // namespace exitwatch
