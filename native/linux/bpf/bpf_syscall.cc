#include "linux/bpf/bpf_syscall.h"

#include <sys/syscall.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "linux/bpf/locked_memory.h"

namespace exitwatch {

namespace bpf {

namespace {

#ifndef SYS_bpf
#define SYS_bpf 321
#endif

// The helpers that read kernel memory require the GPL or a compatible license.
constexpr char kLicense[] = "Dual MIT/GPL";

// Enough for the verifier's log of a small program. For a large one, kMostLogBytes is enough for
// some million verified instructions. The last line is the one that counts.
constexpr size_t kLogBytes = 64 * 1024;
constexpr size_t kMostLogBytes = 16 * 1024 * 1024 - 1;  // the limit of kernels before 6.4
constexpr int kAttempts = 5;

// The attributes of BPF_PROG_LOAD in the kernel's layout: headers before Linux 5.5 lack the last
// member.
struct LoadAttributes {
  uint32_t type;
  uint32_t count;
  uint64_t instructions;
  uint64_t license;
  uint32_t log_level;
  uint32_t log_size;
  uint64_t log;
  uint32_t version;
  uint32_t flags;
  char name[16];
  uint32_t interface;
  uint32_t attach_type;
  uint32_t types[9];  // describe the program's own types; unused
  uint32_t function;
};
static_assert(offsetof(LoadAttributes, name) == 48 && offsetof(LoadAttributes, attach_type) == 68 &&
                  offsetof(LoadAttributes, function) == 108 && sizeof(LoadAttributes) == 112,
              "the kernel reads this layout");

constexpr uint32_t kFunctionEntry = 24;  // BPF_TRACE_FENTRY

template <typename Attributes>
UniqueFd TryBpf(bpf_cmd command, Attributes& attributes) {
  // EAGAIN: a signal interrupted the verifier.
  for (int attempt = 1;; attempt++) {
    const long fd = syscall(SYS_bpf, command, &attributes, sizeof(attributes));
    if (fd >= 0 || errno != EAGAIN || attempt == kAttempts) return UniqueFd(static_cast<int>(fd));
  }
}

template <typename Attributes>
UniqueFd Bpf(bpf_cmd command, Attributes& attributes) {
  UniqueFd fd = TryBpf(command, attributes);
  if (fd || errno != EPERM) return fd;
  const MoreLockedMemory more;
  return more ? TryBpf(command, attributes) : std::move(fd);
}

}  // namespace

bool IsForbidden() {
  // This command does not exist: the kernel answers EINVAL if the call gets that far.
  return syscall(SYS_bpf, -1, nullptr, 0) < 0 && (errno == EPERM || errno == EACCES);
}

UniqueFd CreateMap(const char* name, uint32_t type, uint32_t key_bytes, uint32_t value_bytes,
                   uint32_t entries, uint32_t flags) {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  attributes.map_type = type;
  attributes.key_size = key_bytes;
  attributes.value_size = value_bytes;
  attributes.max_entries = entries;
  attributes.map_flags = flags;
  std::strncpy(attributes.map_name, name, sizeof(attributes.map_name) - 1);
  return Bpf(BPF_MAP_CREATE, attributes);
}

UniqueFd LoadProgram(const char* name, uint32_t type, const std::vector<bpf_insn>& program,
                     uint32_t function, std::string* log) {
  LoadAttributes attributes = {};
  attributes.type = type;
  attributes.instructions = reinterpret_cast<uint64_t>(program.data());
  attributes.count = static_cast<uint32_t>(program.size());
  attributes.license = reinterpret_cast<uint64_t>(kLicense);
  std::strncpy(attributes.name, name, sizeof(attributes.name) - 1);
  if (function != 0) {
    attributes.attach_type = kFunctionEntry;
    attributes.function = function;
  }
  UniqueFd fd = Bpf(BPF_PROG_LOAD, attributes);
  if (fd) return fd;

  const int error = errno;
  attributes.log_level = 1;
  for (const size_t bytes : {kLogBytes, kMostLogBytes}) {
    log->assign(bytes, '\0');
    attributes.log = reinterpret_cast<uint64_t>(&(*log)[0]);
    attributes.log_size = static_cast<uint32_t>(bytes);
    fd = Bpf(BPF_PROG_LOAD, attributes);
    // ENOSPC: the log was too small. Before Linux 6.4 it holds the start of the output, since then
    // the end.
    if (fd || errno != ENOSPC) break;
  }
  log->resize(std::strlen(log->c_str()));
  errno = error;
  return fd;
}

namespace {

template <typename Attributes>
long Call(bpf_cmd command, Attributes& attributes) {
  return syscall(SYS_bpf, command, &attributes, sizeof(attributes));
}

bpf_attr ElementOf(int map_fd, const void* key, const void* value) {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  attributes.map_fd = static_cast<uint32_t>(map_fd);
  attributes.key = reinterpret_cast<uint64_t>(key);
  attributes.value = reinterpret_cast<uint64_t>(value);
  return attributes;
}

// As many bytes of it as the kernel knows.
bool ReadInfo(int fd, void* info, uint32_t bytes) {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  attributes.info.bpf_fd = static_cast<uint32_t>(fd);
  attributes.info.info_len = bytes;
  attributes.info.info = reinterpret_cast<uint64_t>(info);
  return Call(BPF_OBJ_GET_INFO_BY_FD, attributes) == 0;
}

}  // namespace

bool Lookup(int map_fd, const void* key, void* value) {
  bpf_attr attributes = ElementOf(map_fd, key, value);
  return Call(BPF_MAP_LOOKUP_ELEM, attributes) == 0;
}

bool Update(int map_fd, const void* key, const void* value, uint64_t flags) {
  bpf_attr attributes = ElementOf(map_fd, key, value);
  attributes.flags = flags;
  return Call(BPF_MAP_UPDATE_ELEM, attributes) == 0;
}

bool Delete(int map_fd, const void* key) {
  bpf_attr attributes = ElementOf(map_fd, key, nullptr);
  return Call(BPF_MAP_DELETE_ELEM, attributes) == 0;
}

bool NextKey(int map_fd, const void* key, void* next) {
  bpf_attr attributes = ElementOf(map_fd, key, next);
  return Call(BPF_MAP_GET_NEXT_KEY, attributes) == 0;
}

bool ReadMapInfo(int map_fd, MapInfo* info) { return ReadInfo(map_fd, info, sizeof(*info)); }

bool ReadProgramInfo(int program_fd, ProgramInfo* info) {
  // struct bpf_prog_info, as far as it is looked at: headers of old distributions lack its end.
  struct {
    uint32_t type, id;
    uint8_t unused[184];
    uint64_t run_ns, run_count, misses;
  } raw = {};
  static_assert(offsetof(decltype(raw), run_ns) == 192, "the kernel writes this layout");
  if (!ReadInfo(program_fd, &raw, sizeof(raw))) return false;
  *info = {raw.id, raw.run_ns, raw.run_count, raw.misses};
  return true;
}

bool Pin(int fd, const std::string& path) {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  attributes.pathname = reinterpret_cast<uint64_t>(path.c_str());
  attributes.bpf_fd = static_cast<uint32_t>(fd);
  return Call(BPF_OBJ_PIN, attributes) == 0;
}

UniqueFd OpenPinned(const std::string& path) {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  attributes.pathname = reinterpret_cast<uint64_t>(path.c_str());
  return UniqueFd(static_cast<int>(Call(BPF_OBJ_GET, attributes)));
}

UniqueFd OpenRawTracepoint(const char* tracepoint, int program_fd) {
  constexpr auto kRawTracepointOpen = static_cast<bpf_cmd>(17);
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  attributes.raw_tracepoint.name = reinterpret_cast<uint64_t>(tracepoint);
  attributes.raw_tracepoint.prog_fd = static_cast<uint32_t>(program_fd);
  return Bpf(kRawTracepointOpen, attributes);
}

}  // namespace bpf

}  // namespace exitwatch
