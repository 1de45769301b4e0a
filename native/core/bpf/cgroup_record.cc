#include "core/bpf/cgroup_record.h"

#include <cstring>

namespace exitwatch {

std::optional<std::string> PathOf(const CgroupRecord& record) {
  if (record.levels > CgroupRecord::kLevels) return std::nullopt;
  std::string path;
  for (size_t i = record.levels; i > 0; i--) {
    const char* const name = record.names[i - 1];
    const size_t size = strnlen(name, CgroupRecord::kLevelBytes);
    // A name that just fits may be truncated.
    if (size == 0 || size >= CgroupRecord::kLevelBytes - 1) return std::nullopt;
    path.append("/").append(name, size);
  }
  return path.empty() ? "/" : path;
}

}  // namespace exitwatch
