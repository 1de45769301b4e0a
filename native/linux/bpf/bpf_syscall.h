#ifndef EXITWATCH_LINUX_BPF_BPF_SYSCALL_H_
#define EXITWATCH_LINUX_BPF_BPF_SYSCALL_H_

#include <linux/bpf.h>

#include <cstdint>
#include <string>
#include <vector>

#include "linux/system/unique_fd.h"

namespace exitwatch {

// bpf(2) without a library. All functions fail with errno set. Before creating something, they
// raise the limit of locked memory as far as they can.
namespace bpf {

// Whether every call of bpf(2) is refused. errno has the reason.
bool IsForbidden();

// Kinds of maps that old distributions' headers lack.
constexpr uint32_t kHash = 1;
constexpr uint32_t kArray = 2;
constexpr uint32_t kLruHash = 9;          // Linux 4.10
constexpr uint32_t kRingbuf = 27;         // Linux 5.8
constexpr uint32_t kMmapable = 1u << 10;  // BPF_F_MMAPABLE, Linux 5.5

UniqueFd CreateMap(const char* name, uint32_t type, uint32_t key_bytes, uint32_t value_bytes,
                   uint32_t entries, uint32_t flags);

constexpr uint32_t kSocketFilter = 1;
constexpr uint32_t kRawTracepoint = 17;  // Linux 4.17
constexpr uint32_t kTracing = 26;        // Linux 5.5

// Loads a program of this type. If the verifier refuses it, `log` ends with the reason. `function`:
// for kTracing, the type id of the function at whose entry the program runs.
UniqueFd LoadProgram(const char* name, uint32_t type, const std::vector<bpf_insn>& program,
                     uint32_t function, std::string* log);

// Of maps of any kind. Failures are errno's.
bool Lookup(int map_fd, const void* key, void* value);
bool Update(int map_fd, const void* key, const void* value, uint64_t flags);
bool Delete(int map_fd, const void* key);
// The key after this one; the first, after nullptr. False with ENOENT at the end.
bool NextKey(int map_fd, const void* key, void* next);

struct MapInfo {
  uint32_t type, id, key_bytes, value_bytes, entries, flags;
};
bool ReadMapInfo(int map_fd, MapInfo* info);

struct ProgramInfo {
  uint32_t id = 0;
  uint64_t run_ns = 0;     // with kernel.bpf_stats_enabled
  uint64_t run_count = 0;  // the same
  uint64_t misses = 0;     // runs that were left out; Linux 5.12
};
bool ReadProgramInfo(int program_fd, ProgramInfo* info);

// Gives a map, a program or a link a name in a BPF file system, until that is unlinked.
bool Pin(int fd, const std::string& path);
UniqueFd OpenPinned(const std::string& path);

// Runs the program at a tracepoint until the returned descriptor is closed. `tracepoint` is nullptr
// if the program is for a function.
UniqueFd OpenRawTracepoint(const char* tracepoint, int program_fd);

}  // namespace bpf

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_BPF_SYSCALL_H_
