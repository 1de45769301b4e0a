#ifndef EXITWATCH_CORE_BPF_SPOILT_LAYOUT_H_
#define EXITWATCH_CORE_BPF_SPOILT_LAYOUT_H_

#include <string>

#include "core/bpf/kernel_layout.h"

namespace exitwatch {

// What a kernel that we do not know may have changed: tests have the trace misread it on purpose,
// to see that its trial notices. "" changes nothing.
inline constexpr const char* kSpoils[] = {
    "pid",  "uid",   "signal", "arguments", "no-info", "kernel-thread", "group",  "direction",
    "code", "value", "exit",   "start",     "name",    "stack",         "parent", "thread",
};
void SpoilLayout(const std::string& spoil, SignalLayout* layout);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_SPOILT_LAYOUT_H_
