#ifndef EXITWATCH_LINUX_BPF_CGROUP_PATHS_H_
#define EXITWATCH_LINUX_BPF_CGROUP_PATHS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/bpf/cgroup_record.h"
#include "linux/system/memory_map.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// Paths of cgroups by id; the kernel never reuses ids. When the exit of its last process is read, a
// cgroup is often gone. So BPF programs write its path while a process is still in it; without
// them, the reader looks at once. For any thread.
class CgroupPaths {
 public:
  // Learns a path from a program's record.
  void Learn(const CgroupRecord& record);

  // Asks the kernel now, unless the path is known.
  void Look(uint64_t id);

  // The path; nothing if unknown. Sets `is_shortage` if a descriptor or memory is currently
  // lacking.
  std::optional<std::string> Find(uint64_t id, bool* is_shortage);

  // How many times all paths were forgotten because there were too many.
  uint32_t forgotten() const { return forgotten_.load(std::memory_order_relaxed); }

 private:
  void Keep(uint64_t id, std::optional<std::string> path);

  std::mutex mutex_;
  // Guarded by mutex_. Nothing if the cgroup is gone, or its path may not be reported.
  std::unordered_map<uint64_t, std::optional<std::string>> paths_;
  std::atomic<uint32_t> forgotten_{0};
};

// The ids whose paths one program has written into its ring buffer: its `cgroups` map. Programs do
// not share this map, so that a path always comes before what refers to it.
class KnownCgroups {
 public:
  // False if paths are not to be reported: there is no v2 hierarchy, or we see another part of it
  // than the kernel (cgroup_namespaces(7)).
  bool Open();

  // Takes over the map of a program that goes on: it writes all paths again. False with errno set.
  bool Adopt(UniqueFd fd);

  // -1 if not open.
  int fd() const { return fd_.Get(); }

  // Makes the program write all paths again.
  void Forget();

  // The same if `paths` has forgotten them.
  void Follow(const CgroupPaths& paths);

 private:
  UniqueFd fd_;
  MemoryMap ids_;
  uint32_t forgotten_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_CGROUP_PATHS_H_
