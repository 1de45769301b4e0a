#ifndef EXITWATCH_CORE_BPF_SPOILT_LAYOUT_H_
#define EXITWATCH_CORE_BPF_SPOILT_LAYOUT_H_

#include <string>

#include "core/bpf/kernel_layout.h"

namespace exitwatch {

// Ways in which an unknown kernel may differ. Tests make the trace misread it on purpose, to prove
// that its trial notices. "" changes nothing.
inline constexpr const char* kSpoils[] = {
    "pid",  "uid",   "signal", "arguments", "no-info", "kernel-thread", "group",  "direction",
    "code", "value", "exit",   "start",     "name",    "stack",         "parent", "thread",
};
void SpoilLayout(const std::string& spoil, SignalLayout* layout);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_SPOILT_LAYOUT_H_
