#include "linux/system/pidfd_set.h"

#include <sys/epoll.h>

#include <cerrno>

namespace exitwatch {

namespace {

constexpr int kAtOnce = 256;

}  // namespace

SystemError PidfdSet::Open() {
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return {Failure::kSystem, errno, "epoll_create1"};
  return {};
}

bool PidfdSet::Add(int pidfd, int32_t pid) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = static_cast<uint64_t>(pid) << 32 | static_cast<uint32_t>(pidfd);
  return epoll_ctl(epoll_.Get(), EPOLL_CTL_ADD, pidfd, &event) == 0;
}

bool PidfdSet::Take(std::vector<Ready>& ready) {
  epoll_event events[kAtOnce];
  const int count = RetryOnEintr([&] { return epoll_wait(epoll_.Get(), events, kAtOnce, 0); });
  for (int i = 0; i < count; i++) {
    const uint64_t tag = events[i].data.u64;
    ready.push_back({static_cast<int32_t>(tag >> 32), static_cast<int>(tag & 0xffffffff)});
  }
  return count == kAtOnce;
}

}  // namespace exitwatch
