#include "linux/group_aware_filter.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "linux/bpf_permission.h"
#include "linux/bpf_syscall.h"
#include "linux/proc_files.h"

namespace exitwatch {

namespace {

using Reason = FilterRefusal::Reason;

constexpr int32_t kBitsPerWord = 64;

FilterRefusal SystemRefusal(const char* what) {
  // The capabilities are there: AskBpfPermission() has looked.
  if (errno == EPERM || errno == EACCES || errno == ENOSYS) return {Reason::kBlocked, errno, what};
  return {Reason::kSystem, errno, what};
}

size_t RoundUpToPowerOfTwo(size_t value, size_t least) {
  size_t power = least;
  while (power < value) power *= 2;
  return power;
}

// Where the verifier says what is wrong: at the end, before its statistics.
std::string LastWords(const std::string& log) {
  size_t end = log.find("\nprocessed ");
  if (end == std::string::npos) end = log.find_last_not_of('\n') + 1;
  const size_t newline = end == 0 ? std::string::npos : log.rfind('\n', end - 1);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return log.substr(begin, end - begin);
}

}  // namespace

FilterRefusal GroupAwareFilter::Open(KernelTypes& types, size_t ring_bytes, bool watched_only) {
  if (const Reason reason = AskBpfPermission(); reason != Reason::kNone) return {reason, 0, ""};
  KernelLayout layout;
  if (FilterRefusal refusal = types.Layout(&layout)) return refusal;
  if (FilterRefusal refusal = CreateMaps(ring_bytes, watched_only)) return refusal;
  return LoadProgram(layout);
}

FilterRefusal GroupAwareFilter::CreateMaps(size_t ring_bytes, bool watched_only) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  ring_bytes_ = RoundUpToPowerOfTwo(ring_bytes, page);
  ring_fd_ =
      bpf::CreateMap("exitwatch_ring", bpf::kRingbuf, 0, 0, static_cast<uint32_t>(ring_bytes_), 0);
  if (!ring_fd_) return SystemRefusal("BPF_MAP_CREATE");
  state_fd_ = bpf::CreateMap("exitwatch_state", bpf::kArray, 4, sizeof(GroupFilterState), 1,
                             bpf::kMmapable);
  if (!state_fd_) return SystemRefusal("BPF_MAP_CREATE");
  if (watched_only) {
    watched_limit_ = (ReadPidMax() / kBitsPerWord + 1) * kBitsPerWord;
    watched_fd_ =
        bpf::CreateMap("exitwatch_set", bpf::kArray, 4, sizeof(uint64_t),
                       static_cast<uint32_t>(watched_limit_ / kBitsPerWord), bpf::kMmapable);
    if (!watched_fd_) return SystemRefusal("BPF_MAP_CREATE");
    if (!watched_.Map(watched_fd_.Get(), static_cast<size_t>(watched_limit_ / 8),
                      PROT_READ | PROT_WRITE)) {
      return SystemRefusal("mmap");
    }
  }
  if (!state_.Map(state_fd_.Get(), sizeof(GroupFilterState), PROT_READ | PROT_WRITE) ||
      !ring_.Open(ring_fd_.Get(), ring_bytes_)) {
    return SystemRefusal("mmap");
  }
  return {};
}

FilterRefusal GroupAwareFilter::LoadProgram(const KernelLayout& layout) {
  const GroupFilterMaps maps = {ring_fd_.Get(), state_fd_.Get(), watched_fd_.Get()};
  std::string log;
  program_ = bpf::LoadSocketFilter(
      "exitwatch", BuildGroupFilter(layout, maps, static_cast<uint32_t>(getpid())), &log);
  if (program_) return {};
  const int error = errno;
  if (log.empty()) return SystemRefusal("BPF_PROG_LOAD");
  // "cannot use helper", before Linux 6.8 "unknown func": one that our capabilities allow.
  const bool lacks_helper = log.find("cannot use helper") != std::string::npos ||
                            log.find("unknown func") != std::string::npos;
  if (lacks_helper && IsKernelConfidential()) return {Reason::kConfidential, error, ""};
  return {lacks_helper ? Reason::kOtherKernel : Reason::kRefused, error, LastWords(log)};
}

void GroupAwareFilter::Watch(int32_t pid) {
  if (pid < 0 || pid >= watched_limit_) return;
  const uint64_t bit = uint64_t{1} << (pid % kBitsPerWord);
  __atomic_fetch_or(watched_.At<uint64_t>(sizeof(uint64_t) * (pid / kBitsPerWord)), bit,
                    __ATOMIC_SEQ_CST);
}

void GroupAwareFilter::Unwatch(int32_t pid) {
  if (pid < 0 || pid >= watched_limit_) return;
  const uint64_t bit = uint64_t{1} << (pid % kBitsPerWord);
  __atomic_fetch_and(watched_.At<uint64_t>(sizeof(uint64_t) * (pid / kBitsPerWord)), ~bit,
                     __ATOMIC_SEQ_CST);
}

bool GroupAwareFilter::ArmBell() {
  // Whoever writes a record looks at the bell afterwards: one of us sees what the other did.
  auto* bell = state_.At<uint32_t>(offsetof(GroupFilterState, bell));
  __atomic_store_n(bell, 1, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!ring_.HasRecord()) return true;
  __atomic_store_n(bell, 0, __ATOMIC_RELAXED);
  return false;
}

uint64_t GroupAwareFilter::Lost() const {
  return __atomic_load_n(state_.At<uint64_t>(offsetof(GroupFilterState, lost)), __ATOMIC_RELAXED);
}

}  // namespace exitwatch
