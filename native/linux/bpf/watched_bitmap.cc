#include "linux/bpf/watched_bitmap.h"

#include "linux/bpf/bpf_program.h"
#include "linux/bpf/bpf_syscall.h"
#include "linux/system/proc_files.h"

namespace exitwatch {

namespace {

constexpr int32_t kBitsPerWord = 64;

}  // namespace

BpfRefusal WatchedBitmap::Open() {
  if (fd_) return {};
  limit_ = (ReadPidMax() / kBitsPerWord + 1) * kBitsPerWord;
  const auto words = static_cast<uint32_t>(limit_ / kBitsPerWord);
  fd_ = bpf::CreateMap("exitwatch_set", bpf::kArray, 4, sizeof(uint64_t), words, bpf::kMmapable);
  if (!fd_) return BpfSystemRefusal("BPF_MAP_CREATE");
  if (!words_.Map(fd_.Get(), words * sizeof(uint64_t), PROT_READ | PROT_WRITE)) {
    const BpfRefusal refusal = BpfSystemRefusal("mmap");
    fd_.Reset();
    return refusal;
  }
  set_.Follow([this](int32_t pid, bool is_watched) { Set(pid, is_watched); });
  return {};
}

void WatchedBitmap::Close() {
  if (!fd_) return;
  set_.Follow({});
  words_ = MemoryMap();
  fd_.Reset();
}

void WatchedBitmap::Set(int32_t pid, bool is_watched) {
  if (pid < 0 || pid >= limit_) return;
  auto* word = words_.At<uint64_t>(sizeof(uint64_t) * static_cast<size_t>(pid / kBitsPerWord));
  const uint64_t bit = uint64_t{1} << (pid % kBitsPerWord);
  if (is_watched) {
    __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
  } else {
    __atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
  }
}

}  // namespace exitwatch
