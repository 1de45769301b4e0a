#include "linux/bpf/cgroup_paths.h"

#include <cstring>
#include <utility>

#include "linux/bpf/bpf_syscall.h"
#include "linux/system/cgroup_path.h"
#include "linux/system/namespaces.h"

namespace exitwatch {

namespace {

// Some 10 MB.
constexpr size_t kMost = 64 * 1024;

constexpr size_t kKnownBytes = kKnownCgroups * sizeof(uint64_t);

}  // namespace

void CgroupPaths::Learn(const CgroupRecord& record) {
  if (std::optional<std::string> path = PathOf(record)) {
    Keep(record.id, std::move(path));
  } else {
    Look(record.id);
  }
}

void CgroupPaths::Look(uint64_t id) {
  bool is_shortage = false;
  if (id != 0) Find(id, &is_shortage);
}

std::optional<std::string> CgroupPaths::Find(uint64_t id, bool* is_shortage) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = paths_.find(id);
    if (found != paths_.end()) return found->second;
  }
  std::optional<std::string> path = CgroupPath(id, is_shortage);
  if (!*is_shortage) Keep(id, path);
  return path;
}

void CgroupPaths::Keep(uint64_t id, std::optional<std::string> path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (paths_.size() >= kMost) {
    paths_.clear();
    forgotten_.fetch_add(1, std::memory_order_relaxed);
  }
  if (path) {
    paths_.insert_or_assign(id, std::move(path));
  } else {
    paths_.try_emplace(id);  // another thread may have learned it meanwhile
  }
}

bool KnownCgroups::Open() {
  if (!HasUnifiedCgroups() || !InInitialCgroupNamespace()) return false;
  fd_ = bpf::CreateMap("exitwatch_cgrp", bpf::kArray, 4, sizeof(uint64_t), kKnownCgroups,
                       bpf::kMmapable);
  if (fd_ && !ids_.Map(fd_.Get(), kKnownBytes, PROT_READ | PROT_WRITE)) fd_.Reset();
  return static_cast<bool>(fd_);
}

bool KnownCgroups::Adopt(UniqueFd fd) {
  if (!ids_.Map(fd.Get(), kKnownBytes, PROT_READ | PROT_WRITE)) return false;
  fd_ = std::move(fd);
  Forget();
  return true;
}

void KnownCgroups::Forget() {
  if (ids_) std::memset(ids_.At<uint8_t>(0), 0, kKnownBytes);
}

void KnownCgroups::Follow(const CgroupPaths& paths) {
  const uint32_t forgotten = paths.forgotten();
  if (forgotten != std::exchange(forgotten_, forgotten)) Forget();
}

}  // namespace exitwatch
