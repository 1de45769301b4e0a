#include "linux/system/descriptor_limit.h"

#include <sys/resource.h>

namespace exitwatch {

namespace {

constexpr rlim_t kLeftToOthers = 128;

bool IsBelow(int fd, rlim_t limit) { return static_cast<rlim_t>(fd) + kLeftToOthers < limit; }

}  // namespace

bool MayKeepDescriptor(int fd) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  if (IsBelow(fd, limit.rlim_cur)) return true;
  if (limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && IsBelow(fd, limit.rlim_cur);
}

}  // namespace exitwatch
