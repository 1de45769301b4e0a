#include "linux/bpf/kernel_types.h"

#include <fcntl.h>

#include <memory>

#include "linux/system/file_status.h"
#include "linux/system/memory_map.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

namespace {

using Reason = BpfRefusal::Reason;

constexpr char kPath[] = "/sys/kernel/btf/vmlinux";

// Some ten times the size on current kernels.
constexpr uint64_t kMostBytes = 64 * 1024 * 1024;

}  // namespace

BpfRefusal KernelTypes::ReadOnce() {
  if (is_read_) return {};
  const UniqueFd file(open(kPath, O_RDONLY | O_CLOEXEC));
  if (!file) return {Reason::kNoBtf, errno, kPath};
  const auto status = ReadFileStatus(file.Get());
  if (!status) return {Reason::kNoBtf, errno, kPath};
  if (status->stx_size == 0 || status->stx_size > kMostBytes) return {Reason::kNoBtf, EFBIG, kPath};

  const auto size = static_cast<size_t>(status->stx_size);
  // Since Linux 6.16 the file can be mapped, which takes a fraction of the time.
  MemoryMap map;
  if (map.Map(file.Get(), size, PROT_READ, 0, MAP_PRIVATE))
    return Resolve(map.At<uint8_t>(0), size);
  const std::unique_ptr<uint8_t[]> data(new uint8_t[size]);
  size_t filled = 0;
  while (filled < size) {
    const ssize_t count =
        RetryOnEintr([&] { return read(file.Get(), data.get() + filled, size - filled); });
    if (count < 0) return {Reason::kNoBtf, errno, kPath};
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  return Resolve(data.get(), filled);
}

BpfRefusal KernelTypes::Resolve(const uint8_t* data, size_t size) {
  const std::optional<Btf> btf = Btf::Parse(data, size);
  if (!btf) return {Reason::kNoBtf, EILSEQ, kPath};
  groups_.layout = ResolveKernelLayout(*btf, &groups_.missing);
  signals_.layout = ResolveSignalLayout(*btf, &signals_.missing);
  is_read_ = true;
  return {};
}

BpfRefusal KernelTypes::ForGroups(KernelLayout* layout) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (BpfRefusal refusal = ReadOnce()) return refusal;
  if (!groups_.layout) return {Reason::kOtherKernel, 0, groups_.missing};
  *layout = *groups_.layout;
  return {};
}

BpfRefusal KernelTypes::ForSignals(SignalLayout* layout) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (BpfRefusal refusal = ReadOnce()) return refusal;
  if (!signals_.layout) return {Reason::kOtherKernel, 0, signals_.missing};
  *layout = *signals_.layout;
  return {};
}

}  // namespace exitwatch
