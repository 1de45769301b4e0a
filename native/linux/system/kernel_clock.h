#ifndef EXITWATCH_LINUX_SYSTEM_KERNEL_CLOCK_H_
#define EXITWATCH_LINUX_SYSTEM_KERNEL_CLOCK_H_

#include <cstdint>

namespace exitwatch {

// Relates the kernel's event timestamps, which are the host's CLOCK_MONOTONIC, to the wall clock
// and to the start times in /proc. A time namespace may shift our own clocks.
class KernelClock {
 public:
  KernelClock();

  // CLOCK_MONOTONIC of the host, in nanoseconds.
  uint64_t Now() const;

  // CLOCK_BOOTTIME of the host, in nanoseconds.
  uint64_t BootNow() const;

  // Measures the offsets between the clocks again.
  void Sample();

  // CLOCK_REALTIME minus the host's CLOCK_MONOTONIC, at the last sample.
  int64_t realtime_offset_ns() const { return realtime_offset_ns_; }

  // How far the wall clock was set, or how long the machine was suspended, between the last two
  // samples; 0 for the slow steering of NTP.
  uint64_t jump_ns() const { return jump_ns_; }

  // The start tick (see ProcStat) of a process that would have started at an event's timestamp.
  uint64_t TickOf(uint64_t timestamp_ns) const;

  // The start tick of a process that started at this time on the host's CLOCK_BOOTTIME.
  uint64_t TickOfStart(uint64_t boottime_ns) const;

  // The same time on the host's CLOCK_MONOTONIC, at least 0.
  uint64_t TimeOfStart(uint64_t boottime_ns) const;

  // When a process with this start tick started, on the host's CLOCK_MONOTONIC, at least 0.
  uint64_t TimeOfTick(uint64_t ticks) const;

 private:
  int64_t namespace_offset_ns_ = 0;           // our CLOCK_MONOTONIC minus the host's
  int64_t namespace_boottime_offset_ns_ = 0;  // our CLOCK_BOOTTIME minus the host's
  int64_t ticks_per_second_;
  int64_t realtime_offset_ns_ = 0;
  // Our CLOCK_BOOTTIME, which /proc uses, minus the host's CLOCK_MONOTONIC.
  int64_t boottime_offset_ns_ = 0;
  uint64_t sampled_ns_ = 0;
  uint64_t jump_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_KERNEL_CLOCK_H_
