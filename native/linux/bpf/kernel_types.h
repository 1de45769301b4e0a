#ifndef EXITWATCH_LINUX_BPF_KERNEL_TYPES_H_
#define EXITWATCH_LINUX_BPF_KERNEL_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/bpf/kernel_layout.h"
#include "linux/bpf/bpf_refusal.h"

namespace exitwatch {

// Where the running kernel keeps what our BPF programs read, according to /sys/kernel/btf/vmlinux.
// That file has some megabytes, so it is read once for all readers that share this object.
class KernelTypes {
 public:
  // For the eBPF filter.
  BpfRefusal ForGroups(KernelLayout* layout);

  // For the signal trace.
  BpfRefusal ForSignals(SignalLayout* layout);

 private:
  template <typename Layout>
  struct Found {
    std::optional<Layout> layout;
    const char* missing = "";  // if there is no layout
  };

  BpfRefusal ReadOnce();
  BpfRefusal Resolve(const uint8_t* data, size_t size);

  std::mutex mutex_;
  bool is_read_ = false;
  Found<KernelLayout> groups_;
  Found<SignalLayout> signals_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_KERNEL_TYPES_H_
