#ifndef EXITWATCH_CORE_BPF_EXECUTABLE_PROGRAM_H_
#define EXITWATCH_CORE_BPF_EXECUTABLE_PROGRAM_H_

#include <linux/bpf.h>

#include <cstdint>
#include <vector>

#include "abi/names.h"
#include "core/bpf/kernel_layout.h"

namespace exitwatch {

// Whose executable it is: a group's address is used again, and so is a time.
struct ExecutableKey {
  uint64_t group;     // its signal_struct
  uint64_t start_ns;  // of its first thread, on CLOCK_BOOTTIME
};

struct ExecutableMaps {
  int names;    // hash of file names, kExecutableBytes each, by ExecutableKey
  int watched;  // see GroupFilterMaps
};

// A program for the raw tracepoint sched_process_exit, or the entry of taskstats_exit(), which have
// the same arguments: the last thread of a group notes which file it ran. When the group-aware
// filter looks, the address space is gone, and with it that file. Only where
// KernelLayout::executable is known.
std::vector<bpf_insn> BuildExecutableProgram(const KernelLayout& layout,
                                             const ExecutableMaps& maps);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_EXECUTABLE_PROGRAM_H_
