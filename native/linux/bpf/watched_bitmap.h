#ifndef EXITWATCH_LINUX_BPF_WATCHED_BITMAP_H_
#define EXITWATCH_LINUX_BPF_WATCHED_BITMAP_H_

#include <cstddef>
#include <cstdint>

#include "core/groups/watch_set.h"
#include "linux/bpf/bpf_refusal.h"
#include "linux/system/memory_map.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// The set of watched pids as our BPF programs see it: an array map with one bit per pid, mapped
// into our memory. A pid beyond kernel.pid_max (as it was at Open()) counts as watched.
class WatchedBitmap {
 public:
  explicit WatchedBitmap(WatchSet& set) : set_(set) {}
  ~WatchedBitmap() { Close(); }
  WatchedBitmap(const WatchedBitmap&) = delete;
  WatchedBitmap& operator=(const WatchedBitmap&) = delete;

  // Follows the set from now on. May be called repeatedly.
  BpfRefusal Open();
  void Close();

  // The map; -1 if it is not open.
  int fd() const { return fd_.Get(); }

  // For a pid that is not in the set. The map must be open.
  void Set(int32_t pid, bool is_watched);

 private:
  WatchSet& set_;
  UniqueFd fd_;
  int32_t limit_ = 0;  // pids from here on have no bit
  MemoryMap words_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_WATCHED_BITMAP_H_
