#ifndef EXITWATCH_LINUX_BPF_BPF_PERMISSION_H_
#define EXITWATCH_LINUX_BPF_BPF_PERMISSION_H_

#include "linux/bpf/bpf_refusal.h"

namespace exitwatch {

// Whether this thread may load programs that read kernel memory, judging by its capabilities and
// its seccomp filter. Nothing if there is no objection to trying.
BpfRefusal AskBpfPermission();

// Whether kernel lockdown prevents programs from reading kernel memory (kernel_lockdown(7),
// "confidentiality").
bool IsKernelConfidential();

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_BPF_PERMISSION_H_
