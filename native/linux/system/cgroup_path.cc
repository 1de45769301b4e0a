#include "linux/system/cgroup_path.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "linux/system/unique_fd.h"

namespace exitwatch {

namespace {

// Where systemd mounts the v2 hierarchy: alone, or beside the hierarchies of v1.
constexpr const char* kMountPoints[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

// FILEID_KERNFS of the kernel's <linux/exportfs.h>: the file handle is the id (Linux 5.5).
constexpr int kKernfsHandle = 0xfe;

}  // namespace

bool HasUnifiedCgroups() {
  return std::any_of(std::begin(kMountPoints), std::end(kMountPoints), [](const char* path) {
    struct statfs file_system;
    return statfs(path, &file_system) == 0 && file_system.f_type == CGROUP2_SUPER_MAGIC;
  });
}

std::optional<std::string> CgroupPath(uint64_t id, bool* is_shortage) {
  const auto note = [is_shortage] {
    *is_shortage |= errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  };
  for (const char* const mount_point : kMountPoints) {
    const UniqueFd root(open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root) note();
    struct statfs file_system;
    if (!root || fstatfs(root.Get(), &file_system) != 0) continue;
    if (file_system.f_type != CGROUP2_SUPER_MAGIC) continue;

    alignas(file_handle) char buffer[sizeof(file_handle) + sizeof(id)];
    auto* const handle = reinterpret_cast<file_handle*>(buffer);
    handle->handle_bytes = sizeof(id);
    handle->handle_type = kKernfsHandle;
    std::memcpy(handle->f_handle, &id, sizeof(id));
    const UniqueFd cgroup(open_by_handle_at(root.Get(), handle, O_PATH | O_CLOEXEC));
    if (!cgroup) {
      note();
      return std::nullopt;
    }

    char link[64];
    char path[PATH_MAX];
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", cgroup.Get());
    const ssize_t size = readlink(link, path, sizeof(path));
    const size_t prefix = std::strlen(mount_point);
    if (size < static_cast<ssize_t>(prefix) || size == sizeof(path)) return std::nullopt;
    if (std::strncmp(path, mount_point, prefix) != 0) return std::nullopt;
    const std::string inside(path + prefix, static_cast<size_t>(size) - prefix);
    return inside.empty() ? "/" : inside;
  }
  return std::nullopt;
}

}  // namespace exitwatch
