#include "core/groups/watch_set.h"

#include <algorithm>
#include <utility>

namespace exitwatch {

void WatchSet::Follow(OnChange on_change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  on_change_ = std::move(on_change);
  if (!on_change_) return;
  for (const auto& [pid, watch] : watches_) on_change_(pid, true);
}

void WatchSet::Add(const Watch& watch, const std::function<uint64_t()>& now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = watches_.emplace(watch.pid, watch);
  CountOf(watch).fetch_add(1, std::memory_order_relaxed);
  if (on_change_ && watches_.count(watch.pid) == 1) on_change_(watch.pid, true);
  entry->second.armed_ns = now();
}

void WatchSet::Erase(Watches::iterator watch) {
  const int32_t pid = watch->first;
  CountOf(watch->second).fetch_sub(1, std::memory_order_relaxed);
  watches_.erase(watch);
  if (on_change_ && watches_.count(pid) == 0) on_change_(pid, false);
}

bool WatchSet::Contains(int32_t pid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return watches_.count(pid) != 0;
}

std::optional<Watch> WatchSet::Remove(int32_t pid, uint64_t start_ticks, uint64_t inode) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [begin, end] = watches_.equal_range(pid);
  for (auto entry = begin; entry != end; ++entry) {
    const ProcessEntry& process = entry->second.process;
    if (process.start_ticks == start_ticks && process.inode == inode) {
      const Watch watch = entry->second;
      Erase(entry);
      return watch;
    }
  }
  return {};
}

std::vector<Watch> WatchSet::List() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Watch> list;
  list.reserve(watches_.size());
  for (const auto& [pid, watch] : watches_) list.push_back(watch);
  return list;
}

std::optional<Watch> WatchSet::Take(const GroupIdentity& identity, uint64_t end_ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [begin, end] = watches_.equal_range(identity.pid);
  auto best = end;
  for (auto entry = begin; entry != end; ++entry) {
    const Watch& watch = entry->second;
    if (!IsSameGroup(watch.Identity(), identity)) continue;
    const bool knows_inode = identity.inode != 0 && watch.process.inode != 0;
    if (!knows_inode && watch.since_ns > end_ns) continue;
    if (best == end || watch.since_ns > best->second.since_ns) best = entry;
  }
  if (best == end) return {};
  const Watch watch = best->second;
  Erase(best);
  return watch;
}

std::vector<Watch> WatchSet::ListOf(int32_t pid) {
  std::vector<Watch> list;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [begin, end] = watches_.equal_range(pid);
  for (auto entry = begin; entry != end; ++entry) list.push_back(entry->second);
  std::sort(list.begin(), list.end(),
            [](const Watch& a, const Watch& b) { return a.since_ns < b.since_ns; });
  return list;
}

Watch* WatchSet::Find(const GroupIdentity& identity) {
  const auto [begin, end] = watches_.equal_range(identity.pid);
  for (auto entry = begin; entry != end; ++entry) {
    if (IsSameGroup(entry->second.Identity(), identity)) return &entry->second;
  }
  return nullptr;
}

void WatchSet::Contest(const GroupIdentity& identity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Watch* watch = Find(identity)) watch->is_contested = true;
}

void WatchSet::NoteWhole(const GroupIdentity& identity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Watch* watch = Find(identity)) watch->was_whole = true;
}

}  // namespace exitwatch
