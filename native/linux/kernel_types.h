#ifndef EXITWATCH_LINUX_KERNEL_TYPES_H_
#define EXITWATCH_LINUX_KERNEL_TYPES_H_

#include "core/kernel_layout.h"
#include "linux/filter_refusal.h"

namespace exitwatch {

// Finds in /sys/kernel/btf/vmlinux where the running kernel keeps what the filter reads.
FilterRefusal ReadKernelLayout(KernelLayout* layout);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_KERNEL_TYPES_H_
