#ifndef EXITWATCH_CORE_BPF_COMMAND_LINE_RECORD_H_
#define EXITWATCH_CORE_BPF_COMMAND_LINE_RECORD_H_

#include <cstddef>
#include <cstdint>

namespace exitwatch {

// The arguments of a process, as it has them in its memory right now: without its environment,
// which usually follows them. A program writes it into its ring buffer ahead of the record that
// refers to the process.
struct CommandLineRecord {
  // No other record begins with it.
  static constexpr uint64_t kMark = ~uint64_t{0};

  // What programs reserve, for this header and the text. The last one cuts off what is longer.
  static constexpr size_t kSizes[] = {256, 1024, 4096};

  uint64_t mark;
  uint64_t start_ns;  // of the process, CLOCK_BOOTTIME
  uint64_t length;    // of the arguments, which may be more than fit
  int32_t pid;
  int32_t failed;  // other than 0: they could not be read, or changed meanwhile
  // The text follows: each argument ends with a NUL.
};
static_assert(sizeof(CommandLineRecord) == 32, "the programs write this layout");

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_COMMAND_LINE_RECORD_H_
