#ifndef EXITWATCH_CORE_KERNEL_LAYOUT_H_
#define EXITWATCH_CORE_KERNEL_LAYOUT_H_

#include <cstdint>
#include <optional>

#include "core/btf.h"

namespace exitwatch {

// Where the running kernel keeps what the group-aware filter reads: offsets in bytes.
struct KernelLayout {
  struct {
    uint32_t flags, exit_state, pid, tgid, real_parent, group_leader, thread_pid;
    uint32_t start_boottime, cred, comm, signal;
  } task;
  struct {
    uint32_t references, threads, group_exit_code, flags;
  } signal;
  struct {
    uint32_t euid;
  } cred;
  struct {
    std::optional<uint32_t> inode;  // since Linux 6.9
  } pid;
};

// Nothing where the kernel lacks a member, or has it in another form; `missing` names it then.
std::optional<KernelLayout> ResolveKernelLayout(const Btf& btf, const char** missing);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_KERNEL_LAYOUT_H_
