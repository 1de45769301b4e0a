#ifndef EXITWATCH_CORE_BPF_SIGNAL_PROGRAM_H_
#define EXITWATCH_CORE_BPF_SIGNAL_PROGRAM_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/signal_record.h"
#include "core/bpf/kernel_layout.h"

namespace exitwatch {

// What the program and user space share, beside the records.
struct SignalTraceState {
  uint32_t eager;  // 1: every record wakes the reader; otherwise only a buffer that is half full
  uint32_t zero;   // always; the verifier does not know that
  uint64_t lost;   // records that did not fit into the ring buffer
};

struct SignalTraceMaps {
  int ring;           // BPF_MAP_TYPE_RINGBUF of SignalRecord and CgroupRecord
  size_t ring_bytes;  // its size
  int state;          // array with one SignalTraceState
  int watched;        // array of 64-bit words, a bit for each process to tell of; -1: all are
  int cgroups;        // array of kKnownCgroups ids; -1: paths are not told
};

// For the raw tracepoint signal_generate, which the sender of a signal calls. Leaves out
// what cannot end a process: signals that do not by default, that were ignored, or were pending
// already; and of those that runtimes catch all day (faults, timers, real-time signals), the caught
// ones that are not blocked and that no other process has sent.
std::vector<bpf_insn> BuildSignalProgram(const SignalLayout& layout, const SignalTraceMaps& maps);

// For the raw tracepoint signal_deliver, which is called by a thread that takes a signal, after its
// tracer has had its say. Tells only of what ends the process: where a signal was blocked, traced,
// or dumps core, its generation does not tell that.
std::vector<bpf_insn> BuildTakenProgram(const SignalLayout& layout, const SignalTraceMaps& maps);

// For the raw tracepoint mark_victim: the OOM killer has chosen a process, and killed it just
// before, or found it dying. All are reported: others may share the memory of who is watched.
std::vector<bpf_insn> BuildOomProgram(const SignalLayout& layout, const SignalTraceMaps& maps);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_SIGNAL_PROGRAM_H_
