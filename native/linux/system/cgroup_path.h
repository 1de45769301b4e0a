#ifndef EXITWATCH_LINUX_SYSTEM_CGROUP_PATH_H_
#define EXITWATCH_LINUX_SYSTEM_CGROUP_PATH_H_

#include <cstdint>
#include <optional>
#include <string>

namespace exitwatch {

// Whether a v2 hierarchy is mounted: alone, or beside those of v1.
bool HasUnifiedCgroups();

// The path of a cgroup in the v2 hierarchy ("/user.slice"), by its id. Nothing where that hierarchy
// is not mounted, the cgroup is gone or outside of what is mounted, or without CAP_DAC_READ_SEARCH;
// and, with `is_shortage`, where a descriptor or memory is lacking just now.
std::optional<std::string> CgroupPath(uint64_t id, bool* is_shortage);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_CGROUP_PATH_H_
