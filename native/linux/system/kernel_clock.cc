#include "linux/system/kernel_clock.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

namespace exitwatch {

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kPreemptedNs = 20'000;
constexpr int kAttempts = 5;
constexpr int64_t kLeastSuspendNs = 1'000'000;

int64_t Read(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

// The offset of our time namespace for "monotonic" or "boottime" (time_namespaces(7), Linux 5.6).
// The file shows the offsets for children. They are our own unless this process itself called
// unshare(2).
int64_t TimeNamespaceOffset(const char* wanted) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/timens_offsets", "re"),
                                                   [](FILE* f) { return f ? std::fclose(f) : 0; });
  if (!file) return 0;
  char clock[16];
  long long seconds = 0;
  long long nanoseconds = 0;
  while (std::fscanf(file.get(), "%15s %lld %lld", clock, &seconds, &nanoseconds) == 3) {
    if (std::strcmp(clock, wanted) == 0) return seconds * kSecond + nanoseconds;
  }
  return 0;
}

}  // namespace

KernelClock::KernelClock()
    : namespace_offset_ns_(TimeNamespaceOffset("monotonic")),
      namespace_boottime_offset_ns_(TimeNamespaceOffset("boottime")),
      ticks_per_second_(sysconf(_SC_CLK_TCK)) {
  Sample();
  jump_ns_ = 0;
}

uint64_t KernelClock::Now() const { return Read(CLOCK_MONOTONIC) - namespace_offset_ns_; }

uint64_t KernelClock::BootNow() const {
  return Read(CLOCK_BOOTTIME) - namespace_boottime_offset_ns_;
}

void KernelClock::Sample() {
  // Read the other clocks between two readings of one clock; try again if the thread was preempted
  // in between.
  int64_t monotonic_ns = static_cast<int64_t>(Now());
  int64_t realtime_offset_ns = 0;
  int64_t boottime_offset_ns = 0;
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    realtime_offset_ns = Read(CLOCK_REALTIME) - monotonic_ns;
    boottime_offset_ns = Read(CLOCK_BOOTTIME) - monotonic_ns;
    const int64_t after_ns = static_cast<int64_t>(Now());
    if (after_ns - monotonic_ns < kPreemptedNs) break;
    monotonic_ns = after_ns;
  }
  // It changes only while the machine is suspended; what else differs is how long it took to read.
  if (std::llabs(boottime_offset_ns - boottime_offset_ns_) >= kLeastSuspendNs) {
    boottime_offset_ns_ = boottime_offset_ns;
  }
  // NTP steers by at most 500 parts per million (adjtimex(2)).
  const int64_t steered_ns = 1'000'000 + (monotonic_ns - static_cast<int64_t>(sampled_ns_)) / 2000;
  const int64_t moved_ns = std::llabs(realtime_offset_ns - realtime_offset_ns_);
  jump_ns_ = moved_ns > steered_ns ? static_cast<uint64_t>(moved_ns) : 0;
  realtime_offset_ns_ = realtime_offset_ns;
  sampled_ns_ = static_cast<uint64_t>(monotonic_ns);
}

uint64_t KernelClock::TickOf(uint64_t timestamp_ns) const {
  return (timestamp_ns + boottime_offset_ns_) / (kSecond / ticks_per_second_);
}

uint64_t KernelClock::TickOfStart(uint64_t boottime_ns) const {
  return (boottime_ns + namespace_boottime_offset_ns_) / (kSecond / ticks_per_second_);
}

uint64_t KernelClock::TimeOfStart(uint64_t boottime_ns) const {
  const int64_t time_ns =
      static_cast<int64_t>(boottime_ns) + namespace_boottime_offset_ns_ - boottime_offset_ns_;
  return time_ns > 0 ? static_cast<uint64_t>(time_ns) : 0;
}

uint64_t KernelClock::TimeOfTick(uint64_t ticks) const {
  const int64_t time_ns =
      static_cast<int64_t>(ticks) * (kSecond / ticks_per_second_) - boottime_offset_ns_;
  return time_ns > 0 ? static_cast<uint64_t>(time_ns) : 0;
}

}  // namespace exitwatch
