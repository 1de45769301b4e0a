#include "linux/reader/timeliness.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cstdio>

namespace exitwatch {

void Timeliness::Open() {
  schedstat_.Reset(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
}

void Timeliness::Begin() { begin_ = Take(); }

std::optional<uint64_t> Timeliness::LateNs() {
  const std::optional<Sample> end = Take();
  if (!begin_ || !end) return {};
  // If the thread slept once and was not preempted, only the CPU's run queue can have delayed it.
  if (end->sleeps > begin_->sleeps + 1 || end->interruptions != begin_->interruptions) return {};
  return end->delay_ns - begin_->delay_ns;
}

std::optional<Timeliness::Sample> Timeliness::Take() {
  char text[96];
  const ssize_t size =
      RetryOnEintr([&] { return pread(schedstat_.Get(), text, sizeof(text) - 1, 0); });
  if (size <= 0) return {};
  text[size] = '\0';
  unsigned long long running;
  unsigned long long delayed;
  // These are 0 without CONFIG_SCHEDSTATS, or if the kernel does not keep sched_info.
  if (std::sscanf(text, "%llu %llu", &running, &delayed) != 2 || running == 0) return {};
  rusage usage;
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return {};
  return Sample{delayed, usage.ru_nvcsw, usage.ru_nivcsw};
}

}  // namespace exitwatch
