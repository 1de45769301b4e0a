#ifndef EXITWATCH_LINUX_BPF_EBPF_FILTER_H_
#define EXITWATCH_LINUX_BPF_EBPF_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/bpf/group_filter.h"
#include "linux/bpf/bpf_refusal.h"
#include "linux/bpf/cgroup_paths.h"
#include "linux/bpf/executable_names.h"
#include "linux/bpf/kernel_types.h"
#include "linux/bpf/ring_buffer.h"
#include "linux/bpf/watched_bitmap.h"
#include "linux/system/memory_map.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The eBPF filter in the kernel, and what it shares with us. It is gone with the socket that
// it is attached to and with this object: nothing is pinned.
class EbpfFilter {
 public:
  explicit EbpfFilter(CgroupPaths& cgroups) : cgroups_(&cgroups) {}

  // At least `ring_bytes` for records. `watched`: whose ends are reported; nullptr: those of all.
  BpfRefusal Open(KernelTypes& types, size_t ring_bytes, WatchedBitmap* watched);

  explicit operator bool() const { return static_cast<bool>(program_); }

  // To be attached to the socket.
  int program() const { return program_.Get(); }

  size_t ring_bytes() const { return ring_bytes_; }

  // Records have the executable's name, where the kernel lets us read it.
  bool names_programs() const { return executables_.fd() >= 0; }

  // Readable, by EPOLLET, when the doorbell has rung in vain for a while, and there is a fallback
  // reader.
  int ring_fd() const { return ring_fd_.Get(); }
  void SetFallbackReader(bool has_one);

  // Asks for a message with the next record. False where there is one already.
  bool ArmDoorbell();

  // Calls `visit(const GroupRecord&)` for what came; at most `limit` of them. False where there may
  // be more.
  template <typename Visit>
  bool Read(size_t limit, Visit visit) {
    known_cgroups_.Follow(*cgroups_);
    return ring_.Read(limit, [&](const uint8_t* data, size_t size) {
      if (size == sizeof(GroupRecord)) {
        GroupRecord record;
        __builtin_memcpy(&record, data, sizeof(record));
        visit(record);
      } else if (size == sizeof(CgroupRecord)) {
        cgroups_->Learn(*reinterpret_cast<const CgroupRecord*>(data));
      }
    });
  }

  // How far records were written, or are being written; and whether all until then were read.
  uint64_t Written() const { return ring_.End(); }
  bool HasRead(uint64_t written) const { return ring_.position() >= written; }

  // Records that did not fit, since it was opened.
  uint64_t Lost() const;

 private:
  BpfRefusal CreateMaps(size_t ring_bytes);

  // Leaves the program that there was where this one is refused.
  BpfRefusal Load(const KernelLayout& layout, const GroupFilterMaps& maps);

  CgroupPaths* cgroups_;
  KnownCgroups known_cgroups_;
  ExecutableNames executables_;
  UniqueFd ring_fd_;
  UniqueFd state_fd_;
  UniqueFd program_;
  size_t ring_bytes_ = 0;
  RingBuffer ring_;
  MemoryMap state_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_EBPF_FILTER_H_
