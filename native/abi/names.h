#ifndef EXITWATCH_ABI_NAMES_H_
#define EXITWATCH_ABI_NAMES_H_

#include <cstddef>

namespace exitwatch {

// TASK_COMM_LEN of the kernel: 15 bytes and a terminating NUL.
constexpr size_t kNameBytes = 16;

// Room for the file name of an executable, with a zero at its end. One that fills it may have been
// cut off.
constexpr size_t kExecutableBytes = 64;

// What the child is called that the signal trace is tried with.
constexpr char kTrialChildName[] = "exitwatch-trial";

}  // namespace exitwatch

#endif  // EXITWATCH_ABI_NAMES_H_
