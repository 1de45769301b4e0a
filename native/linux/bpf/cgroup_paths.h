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

// Paths of cgroups by their ids, which the kernel never gives again. A cgroup is often gone when
// the end of its last process is read: BPF programs write down its path while somebody is still in
// it, and without them the reader looks at once. For any thread.
class CgroupPaths {
 public:
  // What a program has told.
  void Learn(const CgroupRecord& record);

  // Asks the kernel now, unless it is known.
  void Look(uint64_t id);

  // The path; nothing where it is not known. With `is_shortage` where a descriptor or memory is
  // lacking just now.
  std::optional<std::string> Find(uint64_t id, bool* is_shortage);

  // How often all paths were forgotten, because there were too many.
  uint32_t forgotten() const { return forgotten_.load(std::memory_order_relaxed); }

 private:
  void Keep(uint64_t id, std::optional<std::string> path);

  std::mutex mutex_;
  // Guarded by mutex_; nothing where it is gone, or may not be told.
  std::unordered_map<uint64_t, std::optional<std::string>> paths_;
  std::atomic<uint32_t> forgotten_{0};
};

// The ids whose paths one program has written into its ring buffer: the `cgroups` map of that
// program, which is nobody else's, so that a path comes before what refers to it.
class KnownCgroups {
 public:
  // False where paths are not to be told: without a v2 hierarchy, or where we see another part of
  // it than the kernel does (cgroup_namespaces(7)).
  bool Open();

  // -1 unless it is open.
  int fd() const { return fd_.Get(); }

  // Has the program write all paths again if `paths` has forgotten them.
  void Follow(const CgroupPaths& paths);

 private:
  UniqueFd fd_;
  MemoryMap ids_;
  uint32_t forgotten_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_CGROUP_PATHS_H_
