#ifndef EXITWATCH_LINUX_SYSTEM_PROCESS_SIGNAL_H_
#define EXITWATCH_LINUX_SYSTEM_PROCESS_SIGNAL_H_

#include <cstdint>

#include "core/groups/process_witness.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// Sends a signal to the process with this pid, start and inode (0: any), and to no other: a pidfd
// pins the process from before it is identified until the signal is sent. Signal 0 sends nothing.
// `state`: the state of the process; a dead one gets no signal.
SystemError SignalProcess(int32_t pid, uint64_t start_ticks, uint64_t inode, int signal,
                          ProcessState* state);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_PROCESS_SIGNAL_H_
