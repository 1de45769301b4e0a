#ifndef EXITWATCH_CORE_BPF_EXECUTABLE_PROGRAM_H_
#define EXITWATCH_CORE_BPF_EXECUTABLE_PROGRAM_H_

#include <linux/bpf.h>

#include <cstdint>
#include <vector>

#include "abi/names.h"
#include "core/bpf/kernel_layout.h"

namespace exitwatch {

// Identifies the process. The kernel reuses the addresses of groups, and start times are not
// unique.
struct ExecutableKey {
  uint64_t group;     // address of its signal_struct
  uint64_t start_ns;  // start of its first thread, on CLOCK_BOOTTIME
};

struct ExecutableMaps {
  int names;    // hash of ExecutableKey to file names of kExecutableBytes
  int watched;  // see GroupFilterMaps
};

// A program for the raw tracepoint sched_process_exit, or for the entry of taskstats_exit(), which
// has the same arguments. The last thread of a group notes which file it ran: when the eBPF filter
// looks, the address space is gone, and that file with it. Requires KernelLayout::executable.
std::vector<bpf_insn> BuildExecutableProgram(const KernelLayout& layout,
                                             const ExecutableMaps& maps);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_EXECUTABLE_PROGRAM_H_
