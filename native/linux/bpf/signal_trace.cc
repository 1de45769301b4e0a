#include "linux/bpf/signal_trace.h"

#include <unistd.h>

#include <algorithm>

#include "core/bpf/spoilt_layout.h"
#include "linux/bpf/bpf_permission.h"
#include "linux/bpf/bpf_program.h"
#include "linux/bpf/bpf_syscall.h"
#include "linux/system/namespaces.h"

namespace exitwatch {

BpfRefusal SignalTrace::Open(KernelTypes& types, size_t ring_bytes, WatchedBitmap* watched,
                             const std::string& spoil) {
  using Reason = BpfRefusal::Reason;
  if (BpfRefusal refusal = AskBpfPermission()) return refusal;
  // The kernel's pids are those of the host's namespace.
  if (!InInitialPidNamespace()) return {Reason::kForeignPid, 0, ""};
  SignalLayout layout;
  if (BpfRefusal refusal = types.ForSignals(&layout)) return refusal;
  // Needed if the stack's bounds do not come from the registers. A stack is no smaller than a page
  // (arch/arm64's <asm/memory.h>).
  layout.stack_bytes = std::max(layout.stack_bytes, static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  SpoilLayout(spoil, &layout);
  if (BpfRefusal refusal = CreateMaps(ring_bytes)) return refusal;
  if (watched != nullptr) {
    if (BpfRefusal refusal = watched->Open()) return refusal;
  }
  known_cgroups_.Open();
  const int watched_map = watched != nullptr ? watched->fd() : -1;
  const SignalTraceMaps maps = {ring_fd_.Get(), ring_bytes_,         state_fd_.Get(),
                                watched_map,    known_cgroups_.fd(), command_lines_ != nullptr};
  if (BpfRefusal refusal = LoadSignalProgram(layout, maps)) return refusal;
  BpfRefusal refusal = LoadBpfProgram("exitwatch_taken", bpf::kRawTracepoint,
                                      BuildTakenProgram(layout, maps), &taken_program_);
  if (refusal) return refusal;
  refusal = LoadBpfProgram("exitwatch_oom", bpf::kRawTracepoint, BuildOomProgram(layout, maps),
                           &oom_program_);
  if (refusal) return refusal;
  victims_ = bpf::OpenRawTracepoint("mark_victim", oom_program_.Get());
  if (!victims_) return BpfSystemRefusal("mark_victim");
  taken_ = bpf::OpenRawTracepoint("signal_deliver", taken_program_.Get());
  if (!taken_) return BpfSystemRefusal("signal_deliver");
  signals_ = bpf::OpenRawTracepoint("signal_generate", signal_program_.Get());
  if (!signals_) return BpfSystemRefusal("signal_generate");
  return {};
}

BpfRefusal SignalTrace::LoadSignalProgram(SignalLayout layout, const SignalTraceMaps& maps) {
  const auto load = [&] {
    return LoadBpfProgram("exitwatch_sig", bpf::kRawTracepoint, BuildSignalProgram(layout, maps),
                          &signal_program_);
  };
  BpfRefusal refusal = load();
  if (refusal.reason != BpfRefusal::Reason::kOtherKernel || !layout.syscall) return refusal;
  // bpf_task_pt_regs exists since Linux 5.15.
  layout.syscall.reset();
  return load();
}

BpfRefusal SignalTrace::CreateMaps(size_t ring_bytes) {
  ring_bytes_ = RoundUpToRingBytes(ring_bytes);
  ring_fd_ =
      bpf::CreateMap("exitwatch_sring", bpf::kRingbuf, 0, 0, static_cast<uint32_t>(ring_bytes_), 0);
  state_fd_ = bpf::CreateMap("exitwatch_trace", bpf::kArray, 4, sizeof(SignalTraceState), 1,
                             bpf::kMmapable);
  if (!ring_fd_ || !state_fd_) return BpfSystemRefusal("BPF_MAP_CREATE");
  if (!state_.Map(state_fd_.Get(), sizeof(SignalTraceState), PROT_READ | PROT_WRITE) ||
      !ring_.Open(ring_fd_.Get(), ring_bytes_)) {
    return BpfSystemRefusal("mmap");
  }
  return {};
}

void SignalTrace::SetWakeup(SignalWakeup wakeup) {
  __atomic_store_n(state_.At<uint32_t>(offsetof(SignalTraceState, wakeup)),
                   static_cast<uint32_t>(wakeup), __ATOMIC_SEQ_CST);
}

uint64_t SignalTrace::Lost() const {
  return __atomic_load_n(state_.At<uint64_t>(offsetof(SignalTraceState, lost)), __ATOMIC_RELAXED);
}

}  // namespace exitwatch
