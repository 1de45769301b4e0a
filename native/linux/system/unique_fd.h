#ifndef EXITWATCH_LINUX_SYSTEM_UNIQUE_FD_H_
#define EXITWATCH_LINUX_SYSTEM_UNIQUE_FD_H_

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace exitwatch {

// Repeats a system call that was interrupted by a signal.
template <typename Call>
auto RetryOnEintr(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

// Owns one file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int Get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);  // no retry: Linux frees the number even on EINTR
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_UNIQUE_FD_H_
