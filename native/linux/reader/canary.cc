#include "linux/reader/canary.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "linux/system/thread.h"

namespace exitwatch {

SystemError Canary::Fly(uint64_t since_ns, uint64_t now_ns, Flight* flight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (latest_.time_ns <= since_ns) {
    Flight next;
    next.time_ns = now_ns;
    Thread thread;
    const int error = thread.Start(
        "exitwatch", [&next] { next.thread = static_cast<int32_t>(syscall(SYS_gettid)); });
    if (error != 0) return {Failure::kSystem, error, "pthread_create"};
    thread.Join();
    latest_ = next;
  }
  *flight = latest_;
  return {};
}

bool Canary::IsFlying(const Flight& flight) {
  char path[48];
  std::snprintf(path, sizeof(path), "/proc/self/task/%d", flight.thread);
  return access(path, F_OK) == 0;
}

}  // namespace exitwatch
