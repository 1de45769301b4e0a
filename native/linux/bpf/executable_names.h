#ifndef EXITWATCH_LINUX_BPF_EXECUTABLE_NAMES_H_
#define EXITWATCH_LINUX_BPF_EXECUTABLE_NAMES_H_

#include "core/bpf/executable_program.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The file names of the programs that dying processes ran, kept in the kernel:
// BuildExecutableProgram() notes them, and the eBPF filter takes them shortly afterwards. They
// disappear with this object: nothing is pinned.
class ExecutableNames {
 public:
  // `watched_map`: see GroupFilterMaps. If the kernel cannot or will not provide names, there are
  // none.
  void Open(const KernelLayout& layout, int watched_map);

  // The map of names; -1 if there is none.
  int fd() const { return link_ ? map_.Get() : -1; }

 private:
  UniqueFd map_;
  UniqueFd program_;
  UniqueFd link_;  // attaches the program
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_EXECUTABLE_NAMES_H_
