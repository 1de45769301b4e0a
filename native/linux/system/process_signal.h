#ifndef EXITWATCH_LINUX_SYSTEM_PROCESS_SIGNAL_H_
#define EXITWATCH_LINUX_SYSTEM_PROCESS_SIGNAL_H_

#include <cstdint>

#include "core/groups/process_witness.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// Sends a signal to the process with this pid, start and inode (0: any), and to no other: a pidfd
// holds on to it from before it is looked at until the signal is sent. 0 sends none. `state`: what
// became of it; who is dead is sent nothing.
SystemError SignalProcess(int32_t pid, uint64_t start_ticks, uint64_t inode, int signal,
                          ProcessState* state);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_PROCESS_SIGNAL_H_
