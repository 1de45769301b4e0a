#ifndef EXITWATCH_LINUX_BPF_LOCKED_MEMORY_H_
#define EXITWATCH_LINUX_BPF_LOCKED_MEMORY_H_

#include <sys/resource.h>

#include <mutex>
#include <string>

namespace exitwatch {

// Before Linux 5.11, maps and programs count against RLIMIT_MEMLOCK, together with those of all
// other processes of the user. What exceeds it fails with EPERM (kernel/bpf/syscall.c,
// bpf_charge_memlock()). The kernel checks the limit only when something is created.
//
// This object raises the limit of the process as far as possible (without bound with
// CAP_SYS_RESOURCE). Its destructor restores the limit, because children of the host program
// inherit it. Preserves errno.
class MoreLockedMemory {
 public:
  MoreLockedMemory();
  ~MoreLockedMemory();
  MoreLockedMemory(const MoreLockedMemory&) = delete;
  MoreLockedMemory& operator=(const MoreLockedMemory&) = delete;

  // Whether the limit was raised.
  explicit operator bool() const { return is_raised_; }

 private:
  std::unique_lock<std::mutex> lock_;  // the limit belongs to the whole process
  rlimit before_ = {};
  rlimit raised_ = {};
  bool is_raised_ = false;
};

// Whether this limit is the only known reason why bpf(2) failed with EPERM despite
// MoreLockedMemory. `limit`: describes it in words.
bool IsLockedMemoryShort(std::string* limit);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_LOCKED_MEMORY_H_
