#include "linux/bpf/ebpf_filter.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "linux/bpf/bpf_permission.h"
#include "linux/bpf/bpf_program.h"
#include "linux/bpf/bpf_syscall.h"
#include "linux/bpf/locked_memory.h"

namespace exitwatch {

BpfRefusal EbpfFilter::Open(KernelTypes& types, size_t ring_bytes, WatchedBitmap* watched,
                            bool is_held) {
  if (BpfRefusal refusal = AskBpfPermission()) return refusal;
  KernelLayout layout;
  if (BpfRefusal refusal = types.ForGroups(&layout)) return refusal;
  // Kernels that count programs and maps do so against a small limit.
  std::string limit;
  const bool is_short = layout.locks_programs && IsLockedMemoryShort(&limit);
  if (BpfRefusal refusal = CreateMaps(is_short ? ring_bytes / 2 : ring_bytes)) return refusal;
  if (watched != nullptr) {
    if (BpfRefusal refusal = watched->Open()) return refusal;
  }
  known_cgroups_.Open();
  const int watched_map = watched != nullptr ? watched->fd() : -1;
  GroupFilterMaps maps = {ring_fd_.Get(),
                          state_fd_.Get(),
                          watched_map,
                          known_cgroups_.fd(),
                          -1,
                          is_held ? ring_bytes_ / (command_lines_ != nullptr ? 8 : 2) : 0};
  // Notes are not worth the filter: load it without them first. The memory that they take is
  // released too late for a second try.
  if (is_short) {
    if (BpfRefusal refusal = Load(layout, maps)) return refusal;
  }
  notes_.Open(layout, watched_map, command_lines_ != nullptr ? ring_fd_.Get() : -1, ring_bytes_);
  maps.notes = notes_.fd();
  if (program_ && maps.notes < 0) return {};
  BpfRefusal refusal = Load(layout, maps);
  if (!refusal || !program_) return refusal;
  notes_ = ExitNotes();
  return {};
}

BpfRefusal EbpfFilter::Load(const KernelLayout& layout, const GroupFilterMaps& maps) {
  UniqueFd program;
  BpfRefusal refusal =
      LoadBpfProgram("exitwatch", bpf::kSocketFilter,
                     BuildGroupFilter(layout, maps, static_cast<uint32_t>(getpid())), &program);
  if (!refusal) program_ = std::move(program);
  return refusal;
}

BpfRefusal EbpfFilter::CreateMaps(size_t ring_bytes) {
  ring_bytes_ = RoundUpToRingBytes(ring_bytes);
  ring_fd_ =
      bpf::CreateMap("exitwatch_ring", bpf::kRingbuf, 0, 0, static_cast<uint32_t>(ring_bytes_), 0);
  state_fd_ = bpf::CreateMap("exitwatch_state", bpf::kArray, 4, sizeof(GroupFilterState), 1,
                             bpf::kMmapable);
  if (!ring_fd_ || !state_fd_) return BpfSystemRefusal("BPF_MAP_CREATE");
  if (!state_.Map(state_fd_.Get(), sizeof(GroupFilterState), PROT_READ | PROT_WRITE) ||
      !ring_.Open(ring_fd_.Get(), ring_bytes_)) {
    return BpfSystemRefusal("mmap");
  }
  return {};
}

bool EbpfFilter::ArmDoorbell() {
  // The program writes a record first and looks at the doorbell afterwards, so either we see the
  // record or it sees the doorbell.
  auto* doorbell = state_.At<uint32_t>(offsetof(GroupFilterState, doorbell));
  __atomic_store_n(doorbell, 1, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!ring_.HasRecord()) return true;
  __atomic_store_n(doorbell, 0, __ATOMIC_RELAXED);
  return false;
}

void EbpfFilter::SetFallbackReader(bool has_one) {
  auto* word = state_.At<uint32_t>(offsetof(GroupFilterState, has_fallback_reader));
  __atomic_store_n(word, has_one ? 1 : 0, __ATOMIC_RELAXED);
}

uint64_t EbpfFilter::Lost() const {
  return __atomic_load_n(state_.At<uint64_t>(offsetof(GroupFilterState, lost)), __ATOMIC_RELAXED);
}

}  // namespace exitwatch
