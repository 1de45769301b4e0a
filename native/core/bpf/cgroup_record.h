#ifndef EXITWATCH_CORE_BPF_CGROUP_RECORD_H_
#define EXITWATCH_CORE_BPF_CGROUP_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace exitwatch {

// The path of a cgroup in the v2 hierarchy. A program writes it into its ring buffer while a task
// is still in the cgroup, ahead of the first record that has the cgroup's id.
struct CgroupRecord {
  static constexpr size_t kLevels = 12;

  // The longest names that container runtimes create have some 150 bytes.
  static constexpr size_t kLevelBytes = 160;

  uint64_t id;
  uint32_t levels;  // kLevels + 1: there are more
  uint32_t unused;
  char names[kLevels][kLevelBytes];  // its own name first, then its parent's; the root has none
};
static_assert(sizeof(CgroupRecord) == 16 + 12 * 160, "the programs write this layout");

// Ids whose paths were written, each in the slot of its lower bits. The kernel numbers cgroups
// consecutively.
constexpr uint32_t kKnownCgroups = 4096;

// "/user.slice/user-0.slice". Nothing if the path has more levels, or longer names, than fit.
std::optional<std::string> PathOf(const CgroupRecord& record);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_CGROUP_RECORD_H_
