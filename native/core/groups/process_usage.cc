#include "core/groups/process_usage.h"

namespace exitwatch {

CpuTimes DivideRuntime(const ProcessUsage& usage) {
  const auto& [user_ns, system_ns, runtime_ns, pages, read, written] = usage;
  if (system_ns == 0) return {runtime_ns, 0};
  if (user_ns == 0) return {0, runtime_ns};
  const double share = static_cast<double>(system_ns) / static_cast<double>(user_ns + system_ns);
  const auto system = static_cast<uint64_t>(share * static_cast<double>(runtime_ns));
  return {runtime_ns - system, system};
}

}  // namespace exitwatch
