#ifndef EXITWATCH_ABI_NAMES_H_
#define EXITWATCH_ABI_NAMES_H_

#include <cstddef>

namespace exitwatch {

// The kernel's TASK_COMM_LEN: 15 bytes and a terminating NUL.
constexpr size_t kNameBytes = 16;

// Room for an executable's file name, with its terminating NUL. A name that fills it may be
// truncated.
constexpr size_t kExecutableBytes = 64;

// The same for the program of a signal's sender.
constexpr size_t kSenderProgramBytes = 32;

// The name of the child that the signal trace's trial sends signals to.
constexpr char kTrialChildName[] = "exitwatch-trial";

}  // namespace exitwatch

#endif  // EXITWATCH_ABI_NAMES_H_
