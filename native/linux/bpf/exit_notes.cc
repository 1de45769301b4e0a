#include "linux/bpf/exit_notes.h"

#include <utility>

#include "linux/bpf/bpf_program.h"
#include "linux/bpf/bpf_syscall.h"

namespace exitwatch {

namespace {

// How many processes may be between the exit of their last thread and the filter. In between, the
// kernel frees their memory, which takes 60 ms per gigabyte. New entries displace processes that
// never get to the filter.
constexpr uint32_t kMostNotes = 4096;

}  // namespace

void ExitNotes::Open(const KernelLayout& layout, int watched_map, int command_lines_map,
                     size_t command_lines_bytes) {
  if (!layout.executable) return;
  map_ = bpf::CreateMap("exitwatch_note", bpf::kLruHash, sizeof(ExitNoteKey), sizeof(ExitNote),
                        kMostNotes, 0);
  if (!map_) return;
  const std::optional<uint32_t> function = layout.executable->function;
  const uint32_t type = function ? bpf::kTracing : bpf::kRawTracepoint;
  const char* tracepoint = function ? nullptr : "sched_process_exit";
  for (const auto& [turn, attached] :
       {std::pair{ExitNoteTurn::kFirst, &first_}, std::pair{ExitNoteTurn::kBackup, &backup_}}) {
    const auto program = BuildExitNoteProgram(
        layout, {map_.Get(), watched_map, command_lines_map, command_lines_bytes}, turn);
    if (LoadBpfProgram("exitwatch_note", type, program, &attached->program, function.value_or(0))) {
      return;
    }
    attached->link = bpf::OpenRawTracepoint(tracepoint, attached->program.Get());
    if (attached->link) continue;
    // Kernels without direct calls (arm64 before Linux 6.4) load it, but cannot attach it.
    attached->program = UniqueFd();
    return;
  }
}

}  // namespace exitwatch
