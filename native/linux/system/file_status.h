#ifndef EXITWATCH_LINUX_SYSTEM_FILE_STATUS_H_
#define EXITWATCH_LINUX_SYSTEM_FILE_STATUS_H_

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

namespace exitwatch {

// With statx(2), which glibc has had since 2.28; it exports stat(2) by this name only since 2.33.
inline std::optional<struct statx> ReadFileStatus(int directory, const char* path) {
  struct statx status;
  const int flags = path[0] == '\0' ? AT_EMPTY_PATH : 0;
  if (statx(directory, path, flags, STATX_BASIC_STATS, &status) != 0) return {};
  return status;
}

inline std::optional<struct statx> ReadFileStatus(const char* path) {
  return ReadFileStatus(AT_FDCWD, path);
}

inline std::optional<struct statx> ReadFileStatus(int fd) { return ReadFileStatus(fd, ""); }

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_FILE_STATUS_H_
