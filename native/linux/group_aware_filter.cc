#include "linux/group_aware_filter.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "linux/bpf_permission.h"
#include "linux/bpf_program.h"
#include "linux/bpf_syscall.h"

namespace exitwatch {

namespace {

// What was closed goes back to RLIMIT_MEMLOCK when a worker of the kernel has freed it.
constexpr int kTriesToReload = 20;
constexpr std::chrono::milliseconds kFreeing(5);

}  // namespace

BpfRefusal GroupAwareFilter::Open(KernelTypes& types, size_t ring_bytes, WatchedBitmap* watched) {
  using Reason = BpfRefusal::Reason;
  if (BpfRefusal refusal = AskBpfPermission()) return refusal;
  KernelLayout layout;
  if (BpfRefusal refusal = types.ForGroups(&layout)) return refusal;
  if (BpfRefusal refusal = CreateMaps(ring_bytes)) return refusal;
  if (watched != nullptr) {
    if (BpfRefusal refusal = watched->Open()) return refusal;
  }
  known_cgroups_.Open();
  const int watched_map = watched != nullptr ? watched->fd() : -1;
  executables_.Open(layout, watched_map);
  GroupFilterMaps maps = {ring_fd_.Get(), state_fd_.Get(), watched_map, known_cgroups_.fd(),
                          executables_.fd()};
  BpfRefusal refusal = Load(layout, maps);
  if (maps.executables < 0) return refusal;
  // Names are not worth the filter.
  for (int i = 0; i < kTriesToReload && refusal.reason == Reason::kLockedMemory; i++) {
    maps.executables = -1;
    executables_ = ExecutableNames();
    std::this_thread::sleep_for(kFreeing);
    refusal = Load(layout, maps);
  }
  return refusal;
}

BpfRefusal GroupAwareFilter::Load(const KernelLayout& layout, const GroupFilterMaps& maps) {
  return LoadBpfProgram("exitwatch", bpf::kSocketFilter,
                        BuildGroupFilter(layout, maps, static_cast<uint32_t>(getpid())), &program_);
}

BpfRefusal GroupAwareFilter::CreateMaps(size_t ring_bytes) {
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

bool GroupAwareFilter::ArmBell() {
  // Whoever writes a record looks at the bell afterwards: one of us sees what the other did.
  auto* bell = state_.At<uint32_t>(offsetof(GroupFilterState, bell));
  __atomic_store_n(bell, 1, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!ring_.HasRecord()) return true;
  __atomic_store_n(bell, 0, __ATOMIC_RELAXED);
  return false;
}

void GroupAwareFilter::SetDeputy(bool has_deputy) {
  auto* word = state_.At<uint32_t>(offsetof(GroupFilterState, has_deputy));
  __atomic_store_n(word, has_deputy ? 1 : 0, __ATOMIC_RELAXED);
}

uint64_t GroupAwareFilter::Lost() const {
  return __atomic_load_n(state_.At<uint64_t>(offsetof(GroupFilterState, lost)), __ATOMIC_RELAXED);
}

}  // namespace exitwatch
