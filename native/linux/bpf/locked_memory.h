#ifndef EXITWATCH_LINUX_BPF_LOCKED_MEMORY_H_
#define EXITWATCH_LINUX_BPF_LOCKED_MEMORY_H_

#include <sys/resource.h>

#include <mutex>
#include <string>

namespace exitwatch {

// Before Linux 5.11 maps and programs count against RLIMIT_MEMLOCK, together with those of all
// other processes of the user, and what does not fit fails with EPERM (kernel/bpf/syscall.c,
// bpf_charge_memlock()). The limit is looked at only when something is created.
//
// While this lives, the limit of the process is as high as it can be: without end with
// CAP_SYS_RESOURCE. Then it is what it was before: children of the host program inherit it. Leaves
// errno alone.
class MoreLockedMemory {
 public:
  MoreLockedMemory();
  ~MoreLockedMemory();
  MoreLockedMemory(const MoreLockedMemory&) = delete;
  MoreLockedMemory& operator=(const MoreLockedMemory&) = delete;

  // Whether it is higher than it was.
  explicit operator bool() const { return is_raised_; }

 private:
  std::unique_lock<std::mutex> lock_;  // the limit is the whole process's
  rlimit before_ = {};
  rlimit raised_ = {};
  bool is_raised_ = false;
};

// Whether that limit, and nothing else that we know of, is why bpf(2) failed with EPERM in spite of
// MoreLockedMemory. `limit`: what it is, in words.
bool IsLockedMemoryShort(std::string* limit);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_LOCKED_MEMORY_H_
