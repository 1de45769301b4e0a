#ifndef EXITWATCH_LINUX_BPF_EXIT_NOTES_H_
#define EXITWATCH_LINUX_BPF_EXIT_NOTES_H_

#include <cstddef>

#include "core/bpf/exit_note_program.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// Notes about dying processes, kept in the kernel: BuildExitNoteProgram() writes them, and the eBPF
// filter takes them shortly afterwards. They disappear with this object: nothing is pinned.
class ExitNotes {
 public:
  // `watched_map`: see GroupFilterMaps. If the kernel cannot or will not provide notes, there are
  // none.
  // `command_lines_map`, of `command_lines_bytes`: see ExitNoteMaps.
  void Open(const KernelLayout& layout, int watched_map, int command_lines_map,
            size_t command_lines_bytes);

  // The map of notes; -1 if there is none.
  int fd() const { return first_.link ? map_.Get() : -1; }

 private:
  struct Attached {
    UniqueFd program;
    UniqueFd link;
  };

  UniqueFd map_;
  Attached first_, backup_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_EXIT_NOTES_H_
