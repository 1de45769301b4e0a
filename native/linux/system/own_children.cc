#include "linux/system/own_children.h"

#include <atomic>
#include <limits>
#include <mutex>

namespace exitwatch {

namespace {

// Only the latest ones: there is one per trial, and one trial per process unless it fails.
constexpr size_t kMost = 8;

// A thread's exit may be timestamped after its parent sees it gone, by as long as it was preempted.
constexpr uint64_t kLateStampNs = 100'000'000;

struct Child {
  GroupIdentity identity;
  uint64_t end_ns = 0;
};

std::mutex mutex;
Child children[kMost];                  // guarded by mutex
size_t next = 0;                        // guarded by mutex
std::atomic<int32_t> pids[kMost] = {};  // their pids, for a quick check without the mutex

bool IsSame(const Child& child, const GroupIdentity& identity, uint64_t time_ns) {
  if (!IsSameGroup(child.identity, identity)) return false;
  const auto has_both = [](uint64_t x, uint64_t y) { return x != 0 && y != 0; };
  return has_both(identity.start_ticks, child.identity.start_ticks) ||
         has_both(identity.inode, child.identity.inode) || time_ns < child.end_ns;
}

}  // namespace

void OwnChildren::Add(const GroupIdentity& identity) {
  const std::lock_guard<std::mutex> lock(mutex);
  children[next] = {identity, std::numeric_limits<uint64_t>::max()};
  pids[next] = identity.pid;
  next = (next + 1) % kMost;
}

void OwnChildren::End(int32_t pid, uint64_t now_ns) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (Child& child : children) {
    if (child.identity.pid != pid || child.end_ns < now_ns) continue;
    child.end_ns = now_ns + kLateStampNs;
  }
}

bool OwnChildren::Contains(const GroupIdentity& identity, uint64_t time_ns) {
  for (size_t i = 0; i < kMost; i++) {
    if (pids[i].load(std::memory_order_relaxed) != identity.pid) continue;
    const std::lock_guard<std::mutex> lock(mutex);
    if (IsSame(children[i], identity, time_ns)) return true;
  }
  return false;
}

}  // namespace exitwatch
