#ifndef EXITWATCH_LINUX_BPF_BPF_SYSCALL_H_
#define EXITWATCH_LINUX_BPF_BPF_SYSCALL_H_

#include <linux/bpf.h>

#include <cstdint>
#include <string>
#include <vector>

#include "linux/system/unique_fd.h"

namespace exitwatch {

// bpf(2), without a library. All fail with errno set. What is created has as much locked memory as
// we can give it.
namespace bpf {

// Whether bpf(2) is refused whatever it is asked for, with the errno of it.
bool IsForbidden();

// Kinds of maps that the headers of old distributions lack.
constexpr uint32_t kArray = 2;
constexpr uint32_t kLruHash = 9;          // Linux 4.10
constexpr uint32_t kRingbuf = 27;         // Linux 5.8
constexpr uint32_t kMmapable = 1u << 10;  // BPF_F_MMAPABLE, Linux 5.5

UniqueFd CreateMap(const char* name, uint32_t type, uint32_t key_bytes, uint32_t value_bytes,
                   uint32_t entries, uint32_t flags);

constexpr uint32_t kSocketFilter = 1;
constexpr uint32_t kRawTracepoint = 17;  // Linux 4.17
constexpr uint32_t kTracing = 26;        // Linux 5.5

// Loads a program of this type. Where the verifier refuses it, `log` ends with why. `function`: for
// kTracing, the type id of the function whose entry it is for.
UniqueFd LoadProgram(const char* name, uint32_t type, const std::vector<bpf_insn>& program,
                     uint32_t function, std::string* log);

// Has the program run at a tracepoint, until what is returned is closed; of a program for a
// function, nullptr.
UniqueFd OpenRawTracepoint(const char* tracepoint, int program_fd);

}  // namespace bpf

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_BPF_SYSCALL_H_
