#include "linux/system/namespaces.h"

#include "linux/system/file_status.h"

namespace exitwatch {

namespace {

constexpr ino_t kInitialUser = 0xEFFFFFFD;
constexpr ino_t kInitialPid = 0xEFFFFFFC;
constexpr ino_t kInitialCgroup = 0xEFFFFFFB;

bool IsInode(const char* path, ino_t inode) {
  const auto file = ReadFileStatus(path);
  return !file || file->stx_ino == inode;
}

}  // namespace

bool InInitialPidNamespace() { return IsInode("/proc/self/ns/pid", kInitialPid); }

bool InInitialUserNamespace() { return IsInode("/proc/self/ns/user", kInitialUser); }

bool InInitialCgroupNamespace() { return IsInode("/proc/self/ns/cgroup", kInitialCgroup); }

}  // namespace exitwatch
