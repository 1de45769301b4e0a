#ifndef EXITWATCH_LINUX_BPF_SIGNAL_TRACE_H_
#define EXITWATCH_LINUX_BPF_SIGNAL_TRACE_H_

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "abi/signal_record.h"
#include "core/bpf/signal_program.h"
#include "linux/bpf/bpf_refusal.h"
#include "linux/bpf/cgroup_paths.h"
#include "linux/bpf/command_lines.h"
#include "linux/bpf/kernel_types.h"
#include "linux/bpf/ring_buffer.h"
#include "linux/bpf/watched_bitmap.h"
#include "linux/system/memory_map.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The signal trace in the kernel, and the memory that it shares with us: programs at the raw
// tracepoints signal_generate, signal_deliver and mark_victim. They disappear with this object or
// this process: nothing is pinned.
class SignalTrace {
 public:
  // `command_lines`: gets those of senders; nullptr: they are not wanted.
  explicit SignalTrace(CgroupPaths& cgroups, CommandLines* command_lines = nullptr)
      : cgroups_(&cgroups), command_lines_(command_lines) {}

  // `watched`: the processes whose signals are reported; nullptr: all. `spoil`: see SpoilLayout().
  // After a refusal, discard the object.
  BpfRefusal Open(KernelTypes& types, size_t ring_bytes, WatchedBitmap* watched,
                  const std::string& spoil);

  explicit operator bool() const { return static_cast<bool>(signals_); }

  // Becomes readable when there is much to read, and by what SetWakeup() asks for.
  int fd() const { return ring_fd_.Get(); }

  // For any thread.
  void SetWakeup(SignalWakeup wakeup);

  // Calls `visit(const SignalRecord&)` for everything generated before this call. False if some of
  // it could not be read.
  template <typename Visit>
  bool Read(Visit visit) {
    known_cgroups_.Follow(*cgroups_);
    const uint64_t end = ring_.End();
    for (int patience = kPatience; ring_.position() < end;) {
      const uint64_t before = ring_.position();
      ring_.Read(kBatch, [&](const uint8_t* data, size_t size) {
        constexpr auto kOf = CommandLines::Of::kSender;
        if (command_lines_ != nullptr && command_lines_->Learn(kOf, data, size)) return;
        if (size == sizeof(SignalRecord)) {
          SignalRecord record;
          __builtin_memcpy(&record, data, sizeof(record));
          visit(record);
        } else if (size == sizeof(CgroupRecord)) {
          cgroups_->Learn(*reinterpret_cast<const CgroupRecord*>(data));
        }
      });
      // A record is being written right now, with interrupts disabled: yield, do not sleep.
      if (ring_.position() == before) {
        if (patience-- == 0) return false;
        sched_yield();
      }
    }
    return true;
  }

  // Records that did not fit since the trace was opened.
  uint64_t Lost() const;

 private:
  static constexpr size_t kBatch = 4096;
  static constexpr int kPatience = 1'000'000;

  BpfRefusal CreateMaps(size_t ring_bytes);

  BpfRefusal LoadSignalProgram(SignalLayout layout, const SignalTraceMaps& maps);

  CgroupPaths* cgroups_;
  CommandLines* command_lines_;
  KnownCgroups known_cgroups_;
  UniqueFd ring_fd_;
  UniqueFd state_fd_;
  UniqueFd signal_program_;
  UniqueFd taken_program_;
  UniqueFd oom_program_;
  UniqueFd signals_;  // attaches a program to its tracepoint
  UniqueFd taken_;
  UniqueFd victims_;
  size_t ring_bytes_ = 0;
  RingBuffer ring_;
  MemoryMap state_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_SIGNAL_TRACE_H_
