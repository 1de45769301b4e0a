#ifndef EXITWATCH_LINUX_BPF_BPF_PROGRAM_H_
#define EXITWATCH_LINUX_BPF_BPF_PROGRAM_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "linux/bpf/bpf_refusal.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// Describes, by errno, a system call that failed although AskBpfPermission() had no objection.
BpfRefusal BpfSystemRefusal(const char* what);

// Loads a program of this type (bpf::kSocketFilter, …); `function`: see bpf::LoadProgram().
BpfRefusal LoadBpfProgram(const char* name, uint32_t type, const std::vector<bpf_insn>& program,
                          UniqueFd* loaded, uint32_t function = 0);

// The size of a ring buffer: a power of two, whole pages, and at least `bytes`.
size_t RoundUpToRingBytes(size_t bytes);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_BPF_PROGRAM_H_
