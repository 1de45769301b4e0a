#ifndef EXITWATCH_LINUX_RECORDER_RECORDED_EXIT_H_
#define EXITWATCH_LINUX_RECORDER_RECORDED_EXIT_H_

#include <cstdint>

#include "abi/record.h"
#include "abi/signal_record.h"
#include "core/bpf/recorder_program.h"
#include "linux/system/kernel_clock.h"

namespace exitwatch {

// What to add to CLOCK_MONOTONIC to have CLOCK_REALTIME, in ns, as both were when a process exited:
// the machine may have been suspended since, and the wall clock set.
int64_t RealtimeOffset(const RecordedExit& exit, const KernelClock& clock);

// As it crosses to JavaScript. `since_ns`: from then on the recorder was at work.
ExitRecord MakeExitRecord(const RecordedExit& exit, uint64_t since_ns, const KernelClock& clock);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_RECORDER_RECORDED_EXIT_H_
