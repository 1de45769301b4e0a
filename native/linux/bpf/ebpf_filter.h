#ifndef EXITWATCH_LINUX_BPF_EBPF_FILTER_H_
#define EXITWATCH_LINUX_BPF_EBPF_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/bpf/group_filter.h"
#include "linux/bpf/bpf_refusal.h"
#include "linux/bpf/cgroup_paths.h"
#include "linux/bpf/command_lines.h"
#include "linux/bpf/exit_notes.h"
#include "linux/bpf/kernel_types.h"
#include "linux/bpf/ring_buffer.h"
#include "linux/bpf/watched_bitmap.h"
#include "linux/system/memory_map.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The eBPF filter in the kernel, and the memory that it shares with us. It disappears with this
// object and the socket that it is attached to: nothing is pinned.
class EbpfFilter {
 public:
  // `command_lines`: nullptr if they are not wanted.
  EbpfFilter(CgroupPaths& cgroups, CommandLines* command_lines)
      : cgroups_(&cgroups), command_lines_(command_lines) {}

  // Reserves at least `ring_bytes` for records. `watched`: the processes whose exits are reported;
  // nullptr: all.
  // `is_held`: the reader lets records come together, and looks in time before the space is used up
  // only if the filter wakes it.
  BpfRefusal Open(KernelTypes& types, size_t ring_bytes, WatchedBitmap* watched, bool is_held);

  explicit operator bool() const { return static_cast<bool>(program_); }

  // To attach to the socket.
  int program() const { return program_.Get(); }

  size_t ring_bytes() const { return ring_bytes_; }

  // Whether records have the executable's name. The kernel must let us read it.
  bool names_programs() const { return notes_.fd() >= 0; }

  // Readable (EPOLLET) when the doorbell has rung in vain for a while and there is a fallback
  // reader.
  int ring_fd() const { return ring_fd_.Get(); }
  void SetFallbackReader(bool has_one);

  // Requests a message with the next record. False if there already is a record.
  bool ArmDoorbell();

  // Calls `visit(const GroupReport&)` for what came, at most `limit` times. False if there may be
  // more.
  template <typename Visit>
  bool Read(size_t limit, Visit visit) {
    known_cgroups_.Follow(*cgroups_);
    return ring_.Read(limit, [&](const uint8_t* data, size_t size) {
      constexpr auto kOf = CommandLines::Of::kExit;
      if (command_lines_ != nullptr && command_lines_->Learn(kOf, data, size)) return;
      if (size == sizeof(GroupReport)) {
        GroupReport report;
        __builtin_memcpy(&report, data, sizeof(report));
        visit(report);
      } else if (size == sizeof(CgroupRecord)) {
        cgroups_->Learn(*reinterpret_cast<const CgroupRecord*>(data));
      }
    });
  }

  // The position up to which records were written or are being written, and whether everything up
  // to a position was read.
  uint64_t Written() const { return ring_.End(); }
  bool HasRead(uint64_t written) const { return ring_.position() >= written; }

  // Records that did not fit since the filter was opened.
  uint64_t Lost() const;

 private:
  BpfRefusal CreateMaps(size_t ring_bytes);

  // Keeps the previous program if this one is refused.
  BpfRefusal Load(const KernelLayout& layout, const GroupFilterMaps& maps);

  CgroupPaths* cgroups_;
  CommandLines* command_lines_;
  KnownCgroups known_cgroups_;
  ExitNotes notes_;
  UniqueFd ring_fd_;
  UniqueFd state_fd_;
  UniqueFd program_;
  size_t ring_bytes_ = 0;
  RingBuffer ring_;
  MemoryMap state_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_EBPF_FILTER_H_
