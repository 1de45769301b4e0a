#ifndef EXITWATCH_LINUX_BPF_EXECUTABLE_NAMES_H_
#define EXITWATCH_LINUX_BPF_EXECUTABLE_NAMES_H_

#include "core/bpf/executable_program.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The file names of the programs that dying processes ran, in the kernel: noted by
// BuildExecutableProgram(), taken by the eBPF filter a moment later. It is gone with this
// object: nothing is pinned.
class ExecutableNames {
 public:
  // `watched_map`: see GroupFilterMaps. Where the kernel does not tell, or refuses, there are no
  // names.
  void Open(const KernelLayout& layout, int watched_map);

  // The map of names; -1 where there are none.
  int fd() const { return link_ ? map_.Get() : -1; }

 private:
  UniqueFd map_;
  UniqueFd program_;
  UniqueFd link_;  // of the program to its place
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_EXECUTABLE_NAMES_H_
