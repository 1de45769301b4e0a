#ifndef EXITWATCH_LINUX_SYSTEM_CGROUP_PATH_H_
#define EXITWATCH_LINUX_SYSTEM_CGROUP_PATH_H_

#include <cstdint>
#include <optional>
#include <string>

namespace exitwatch {

// Whether a v2 hierarchy is mounted, alone or beside those of v1.
bool HasUnifiedCgroups();

// The path of the cgroup with this id in the v2 hierarchy ("/user.slice"). Nothing if that
// hierarchy is not mounted, if the cgroup is gone or outside the mounted part, or without
// CAP_DAC_READ_SEARCH. Sets `is_shortage` if a descriptor or memory is currently lacking.
std::optional<std::string> CgroupPath(uint64_t id, bool* is_shortage);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_CGROUP_PATH_H_
