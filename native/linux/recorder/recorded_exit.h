#ifndef EXITWATCH_LINUX_RECORDER_RECORDED_EXIT_H_
#define EXITWATCH_LINUX_RECORDER_RECORDED_EXIT_H_

#include <cstdint>

#include "abi/record.h"
#include "abi/signal_record.h"
#include "core/bpf/recorder_program.h"
#include "linux/system/kernel_clock.h"

namespace exitwatch {

// CLOCK_TAI minus CLOCK_REALTIME in ns: whole seconds, 0 unless somebody has set it.
int64_t TaiOffset();

// As it crosses to JavaScript. `since_ns`: from then on the recorder was at work.
ExitRecord MakeExitRecord(const RecordedExit& exit, uint64_t since_ns, const KernelClock& clock,
                          int64_t tai_offset_ns);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_RECORDER_RECORDED_EXIT_H_
