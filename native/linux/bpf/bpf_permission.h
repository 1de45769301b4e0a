#ifndef EXITWATCH_LINUX_BPF_BPF_PERMISSION_H_
#define EXITWATCH_LINUX_BPF_BPF_PERMISSION_H_

#include "linux/bpf/bpf_refusal.h"

namespace exitwatch {

// Whether this thread may load programs that read kernel memory, as far as its capabilities and its
// seccomp filter tell; nothing where nothing speaks against trying.
BpfRefusal AskBpfPermission();

// Whether the kernel is locked down so far that no program may read its memory
// (kernel_lockdown(7), "confidentiality").
bool IsKernelConfidential();

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_BPF_PERMISSION_H_
