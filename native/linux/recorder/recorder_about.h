#ifndef EXITWATCH_LINUX_RECORDER_RECORDER_ABOUT_H_
#define EXITWATCH_LINUX_RECORDER_RECORDER_ABOUT_H_

#include <cstddef>
#include <cstdint>

namespace exitwatch {

// What a pinned recorder says of itself, in a map of its own. Every version begins it like this:
// who reads it looks at `magic` and `layout` before anything else.
struct RecorderAbout {
  static constexpr uint64_t kMagic = 0x6577'7265'636f'7264;  // "ewrecord"
  static constexpr size_t kVersionBytes = 32;
  static constexpr size_t kStateDirBytes = 512;

  uint64_t magic;
  uint32_t layout;        // kRecorderLayout
  uint32_t slots;         // for watched processes
  uint64_t ring_bytes;    // for the exits of all processes; 0: only watched ones are recorded
  uint64_t signal_bytes;  // for signals that have not ended a process
  uint64_t since_ns;      // CLOCK_MONOTONIC: from then on it records
  uint32_t owner;         // the user that may use it, beside root
  uint32_t has_inodes;    // see RecorderKey
  uint32_t is_trusted;    // its creator has tried it: it reports signals as they are sent
  uint32_t unused;
  char version[kVersionBytes];  // of exitwatch, for people
  char state_dir[kStateDirBytes];
};
static_assert(sizeof(RecorderAbout) == 600, "other versions read this layout");

// How many signals to watched processes a recorder keeps: a single process, such as the child of a
// trial, may have been sent many.
constexpr uint32_t KeptSignals(uint32_t slots) { return slots < 256 ? 256 : slots; }

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_RECORDER_RECORDER_ABOUT_H_
