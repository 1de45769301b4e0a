#ifndef EXITWATCH_CORE_BPF_CGROUP_RECORD_H_
#define EXITWATCH_CORE_BPF_CGROUP_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace exitwatch {

// The path of a cgroup in the v2 hierarchy, as a program writes it into its ring buffer while a
// task is still in that cgroup: ahead of the first record that has the cgroup's id.
struct CgroupRecord {
  static constexpr size_t kLevels = 12;

  // The longest names that container runtimes make have some 150 bytes.
  static constexpr size_t kLevelBytes = 160;

  uint64_t id;
  uint32_t levels;  // kLevels + 1: there are more
  uint32_t unused;
  char names[kLevels][kLevelBytes];  // its own first, then its parent's; the root has none
};
static_assert(sizeof(CgroupRecord) == 16 + 12 * 160, "the programs write this layout");

// Ids whose paths were written, each at the place that its lower bits tell. The kernel numbers
// cgroups one after another.
constexpr uint32_t kKnownCgroups = 4096;

// "/user.slice/user-0.slice". Nothing where there are more levels, or longer names, than fit.
std::optional<std::string> PathOf(const CgroupRecord& record);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_CGROUP_RECORD_H_
