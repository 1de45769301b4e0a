#ifndef EXITWATCH_LINUX_KERNEL_TYPES_H_
#define EXITWATCH_LINUX_KERNEL_TYPES_H_

#include <mutex>
#include <optional>

#include "core/kernel_layout.h"
#include "linux/filter_refusal.h"

namespace exitwatch {

// Where the running kernel keeps what the filter reads, by /sys/kernel/btf/vmlinux: some megabytes,
// so they are read once for all readers that share this.
class KernelTypes {
 public:
  FilterRefusal Layout(KernelLayout* layout);

 private:
  std::mutex mutex_;
  std::optional<KernelLayout> layout_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_KERNEL_TYPES_H_
