#ifndef EXITWATCH_CORE_BPF_SIGNAL_PROGRAM_H_
#define EXITWATCH_CORE_BPF_SIGNAL_PROGRAM_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/signal_record.h"
#include "core/bpf/kernel_layout.h"
#include "core/bpf/recorder_program.h"

namespace exitwatch {

// Which records wake the reader at once. One that fills up the ring buffer always does.
enum class SignalWakeup : uint32_t {
  kNone,
  kAll,
  // Signals of other processes, but no more often than every kSignalWakeupNs: who asked a sender
  // for one may be gone when its process has ended.
  kOthers,
};
constexpr uint32_t kSignalWakeupNs = 10'000'000;

// Shared by the programs and user space, besides the records.
struct SignalTraceState {
  SignalWakeup wakeup;
  uint32_t zero;      // always 0; the verifier does not know that
  uint64_t lost;      // records that did not fit into the ring buffer
  uint64_t woken_ns;  // when kOthers last woke the reader, on CLOCK_MONOTONIC
};

struct SignalTraceMaps {
  int ring;           // BPF_MAP_TYPE_RINGBUF of SignalRecord and CgroupRecord
  size_t ring_bytes;  // its size
  int state;          // array with one SignalTraceState
  int watched;        // array of 64-bit words, one bit per process to report; -1: all are
  int cgroups;        // array of kKnownCgroups ids; -1: do not report paths
  // Report the arguments of senders, ahead of their signals.
  bool tells_command_lines = false;
  // The programs are a recorder's and write to its maps: of the fields above, only `state` counts.
  const RecorderMaps* recorder = nullptr;
};

// For the raw tracepoint signal_generate, which runs in the sender. Leaves out signals that cannot
// end a process: those that do not by default, are ignored, or are already pending. Of those that
// runtimes catch all day (faults, timers, real-time signals), also leaves out the ones that have a
// handler, are not blocked, and do not come from another process.
std::vector<bpf_insn> BuildSignalProgram(const SignalLayout& layout, const SignalTraceMaps& maps);

// For the raw tracepoint signal_deliver, which runs in a thread that takes a signal, after its
// debugger has acted on it. Reports only what ends the process: if a signal was blocked, went
// through a debugger, or dumps core, its generation does not show that.
std::vector<bpf_insn> BuildTakenProgram(const SignalLayout& layout, const SignalTraceMaps& maps);

// For the raw tracepoint mark_victim: the OOM killer chose a process, and has just killed it or
// found it dying. Reports all victims, because others may share the memory of a watched process.
std::vector<bpf_insn> BuildOomProgram(const SignalLayout& layout, const SignalTraceMaps& maps);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_SIGNAL_PROGRAM_H_
