#ifndef EXITWATCH_CORE_GROUPS_PROCESS_ENTRY_H_
#define EXITWATCH_CORE_GROUPS_PROCESS_ENTRY_H_

#include <cstdint>
#include <cstring>
#include <optional>

#include "core/groups/group_identity.h"
#include "core/parse/proc_stat.h"

namespace exitwatch {

// What was read about a process while it was alive, for use when it is gone.
struct ProcessEntry {
  uint64_t start_ticks = 0;
  uint64_t inode = 0;   // of pidfs; 0 if unknown
  uint64_t cgroup = 0;  // its id in the v2 hierarchy; 0 if unknown
  std::optional<uint32_t> uid;
  char name[kNameBytes] = {};
  bool is_kernel_thread = false;

  ProcessEntry() = default;
  ProcessEntry(const ProcStat& stat, uint64_t pidfd_inode, std::optional<uint32_t> owner)
      : start_ticks(stat.start_ticks),
        inode(pidfd_inode),
        uid(owner),
        is_kernel_thread(stat.IsKernelThread()) {
    std::memcpy(name, stat.name, sizeof(name));
  }

  GroupIdentity Identity(int32_t pid) const { return {pid, start_ticks, inode, 0, 0}; }
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_PROCESS_ENTRY_H_
