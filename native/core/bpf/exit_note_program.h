#ifndef EXITWATCH_CORE_BPF_EXIT_NOTE_PROGRAM_H_
#define EXITWATCH_CORE_BPF_EXIT_NOTE_PROGRAM_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/names.h"
#include "core/bpf/kernel_layout.h"

namespace exitwatch {

// Identifies the process. The kernel reuses the addresses of groups, and start times are not
// unique.
struct ExitNoteKey {
  uint64_t group;     // address of its signal_struct
  uint64_t start_ns;  // start of its first thread, on CLOCK_BOOTTIME
};

// What the kernel forgets about a dying process before the eBPF filter looks.
struct ExitNote {
  uint64_t inode;      // of pidfs; 0 if the kernel has none
  int32_t parent_pid;  // the process's parent at that time
  uint32_t unused;
  char executable[kExecutableBytes];  // the file name; empty if unknown
  char parent_name[kNameBytes];
};
static_assert(sizeof(ExitNote) == 16 + kExecutableBytes + kNameBytes,
              "the program writes this layout");

struct ExitNoteMaps {
  int notes;    // hash of ExitNote by ExitNoteKey
  int watched;  // see GroupFilterMaps
  // BPF_MAP_TYPE_RINGBUF that gets a CommandLineRecord of each process, ahead of its note; -1:
  // none.
  int command_lines;
  size_t command_lines_bytes;  // its size
};

// As RecorderTurn: the backup writes the note if there is none.
enum class ExitNoteTurn { kFirst, kBackup };

// A program for the raw tracepoint sched_process_exit, or for the entry of taskstats_exit(), which
// has the same arguments. The last thread of a group writes the note. When the eBPF filter looks,
// the address space is gone, and with it the file that the process ran; and the parent may have
// reaped the process. Requires KernelLayout::executable.
std::vector<bpf_insn> BuildExitNoteProgram(const KernelLayout& layout, const ExitNoteMaps& maps,
                                           ExitNoteTurn turn);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_EXIT_NOTE_PROGRAM_H_
