#ifndef EXITWATCH_LINUX_READER_EXIT_RECORD_H_
#define EXITWATCH_LINUX_READER_EXIT_RECORD_H_

#include <cstdint>
#include <optional>

#include "abi/record.h"
#include "core/bpf/group_filter.h"
#include "core/groups/thread_group.h"
#include "core/groups/watch_set.h"
#include "linux/system/kernel_clock.h"

namespace exitwatch {

// When an exit was read, in nanoseconds on the clock of KernelClock::Now().
struct ReadingTimes {
  const KernelClock& clock;
  uint64_t armed_ns;        // the stream is complete from here on
  uint64_t unknown_ns;      // a process that was not known started after this
  uint64_t gap_end_ns;      // but not before this; 0 if nothing was lost
  uint64_t wake_ns;         // the reader woke
  bool is_traced_by_watch;  // only signals to watched processes are reported
};

// The exit of a process as the eBPF filter reported it.
ThreadGroup MakeDeadGroup(const GroupReport& report, const KernelClock& clock);

// Joins what events, witnesses and earlier looks say about the exit of a process. `is_zombie`: its
// parent has not reaped it yet.
ExitRecord MakeExitRecord(const ThreadGroup& group, const std::optional<ProcessEntry>& known,
                          const std::optional<Watch>& watch, bool is_zombie,
                          const ReadingTimes& times);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_EXIT_RECORD_H_
