#include "linux/recorder/recorded_exit.h"

#include <sys/timex.h>

#include <algorithm>
#include <cstring>

namespace exitwatch {

namespace {

constexpr int64_t kSecond = 1'000'000'000;

// What to add to CLOCK_MONOTONIC to have CLOCK_REALTIME, in ns, as both were when a process exited:
// the machine may have been suspended since, and the wall clock set.
int64_t RealtimeOffset(const RecordedExit& exit, const KernelClock& clock, int64_t tai_offset_ns) {
  const auto monotonic_ns = static_cast<int64_t>(exit.group.time_ns);
  if (exit.tai_ns != 0) return static_cast<int64_t>(exit.tai_ns) - tai_offset_ns - monotonic_ns;
  // How long ago it was, suspended or not.
  const auto age_ns = static_cast<int64_t>(clock.BootNow()) - static_cast<int64_t>(exit.boot_ns);
  const int64_t realtime_ns =
      clock.realtime_offset_ns() + static_cast<int64_t>(clock.Now()) - age_ns;
  return realtime_ns - monotonic_ns;
}

}  // namespace

int64_t TaiOffset() {
  timex state = {};
  adjtimex(&state);
  return state.tai * kSecond;
}

ExitRecord MakeExitRecord(const RecordedExit& exit, uint64_t since_ns, const KernelClock& clock,
                          int64_t tai_offset_ns) {
  const GroupRecord& group = exit.group;
  const int64_t offset_ns = RealtimeOffset(exit, clock, tai_offset_ns);
  ExitRecord record;
  record.flags = ExitRecord::kKernelTime | ExitRecord::kNameKnown | ExitRecord::kUidKnown |
                 ExitRecord::kStartKnown | ExitRecord::kLossless | ExitRecord::kTraced;
  if ((group.flags & GroupRecord::kStatusKnown) != 0) {
    record.flags |= ExitRecord::kStatusKnown | ExitRecord::kCoreKnown;
    record.status = group.status;
  } else {
    record.flags |= ExitRecord::kLost;
  }
  record.time_ns = static_cast<double>(group.time_ns);
  record.clock_ms = static_cast<double>(offset_ns) / 1e6;
  // Both on the clocks of then.
  const uint64_t lived_ns = exit.boot_ns - std::min(exit.boot_ns, group.start_ns);
  const uint64_t started_ns = group.time_ns - std::min(group.time_ns, lived_ns);
  record.started_ms = static_cast<double>(started_ns) / 1e6 + record.clock_ms;
  record.start_ticks = static_cast<double>(clock.TickOfStart(group.start_ns));
  record.from_ns = static_cast<double>(std::max(started_ns, since_ns));
  record.traced_from_ns = started_ns >= since_ns ? 0 : static_cast<double>(since_ns);
  record.inode = static_cast<double>(group.inode);
  record.cgroup = static_cast<double>(group.cgroup);
  record.pid = group.pid;
  record.parent_pid = group.parent_pid;
  record.uid = group.uid;
  std::memcpy(record.name, group.name, sizeof(record.name));
  record.name[sizeof(record.name) - 1] = '\0';
  if (record.parent_pid != 0) {
    std::memcpy(record.parent_name, exit.parent_name, sizeof(record.parent_name));
    record.parent_name[sizeof(record.parent_name) - 1] = '\0';
  }
  // What fills its room may have been cut off: that is no name.
  if (strnlen(group.executable, kExecutableBytes) < kExecutableBytes - 1) {
    std::memcpy(record.executable, group.executable, kExecutableBytes);
  }
  return record;
}

}  // namespace exitwatch
