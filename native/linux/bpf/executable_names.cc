#include "linux/bpf/executable_names.h"

#include "linux/bpf/bpf_program.h"
#include "linux/bpf/bpf_syscall.h"

namespace exitwatch {

namespace {

// How many processes may be between the exit of their last thread and the filter. In between, the
// kernel frees their memory, which takes 60 ms per gigabyte. New entries displace processes that
// never get to the filter.
constexpr uint32_t kMostNames = 4096;

}  // namespace

void ExecutableNames::Open(const KernelLayout& layout, int watched_map) {
  if (!layout.executable) return;
  map_ = bpf::CreateMap("exitwatch_exe", bpf::kLruHash, sizeof(ExecutableKey), kExecutableBytes,
                        kMostNames, 0);
  if (!map_) return;
  const auto program = BuildExecutableProgram(layout, {map_.Get(), watched_map});
  const std::optional<uint32_t> function = layout.executable->function;
  const uint32_t type = function ? bpf::kTracing : bpf::kRawTracepoint;
  if (LoadBpfProgram("exitwatch_exe", type, program, &program_, function.value_or(0))) return;
  link_ = bpf::OpenRawTracepoint(function ? nullptr : "sched_process_exit", program_.Get());
}

}  // namespace exitwatch
