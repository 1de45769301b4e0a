#include "linux/bpf/locked_memory.h"

#include <cerrno>

#include "linux/bpf/seccomp_trial.h"

namespace exitwatch {

namespace {

// Several readers of one process may open at once, each in its own thread.
std::mutex& LimitMutex() {
  static std::mutex mutex;
  return mutex;
}

void TrySetting() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) setrlimit(RLIMIT_MEMLOCK, &limit);
}

bool IsSame(const rlimit& a, const rlimit& b) {
  return a.rlim_cur == b.rlim_cur && a.rlim_max == b.rlim_max;
}

}  // namespace

MoreLockedMemory::MoreLockedMemory() : lock_(LimitMutex()) {
  const int error = errno;
  const bool is_limited =
      getrlimit(RLIMIT_MEMLOCK, &before_) == 0 && before_.rlim_cur != RLIM_INFINITY;
  if (is_limited && TryWithSeccomp(TrySetting) == SeccompTrial::kHarmless) {
    raised_ = {RLIM_INFINITY, RLIM_INFINITY};
    is_raised_ = setrlimit(RLIMIT_MEMLOCK, &raised_) == 0;
    if (!is_raised_ && before_.rlim_cur < before_.rlim_max) {
      raised_ = {before_.rlim_max, before_.rlim_max};
      is_raised_ = setrlimit(RLIMIT_MEMLOCK, &raised_) == 0;
    }
  }
  errno = error;
}

MoreLockedMemory::~MoreLockedMemory() {
  if (!is_raised_) return;
  const int error = errno;
  // Unless the host program has changed it meanwhile.
  rlimit now = {};
  if (getrlimit(RLIMIT_MEMLOCK, &now) == 0 && IsSame(now, raised_)) {
    setrlimit(RLIMIT_MEMLOCK, &before_);
  }
  errno = error;
}

bool IsLockedMemoryShort(std::string* limit) {
  const MoreLockedMemory more;
  rlimit now = {};
  if (getrlimit(RLIMIT_MEMLOCK, &now) != 0 || now.rlim_cur == RLIM_INFINITY) return false;
  *limit = "RLIMIT_MEMLOCK is " + std::to_string(now.rlim_cur);
  return true;
}

}  // namespace exitwatch
