#ifndef EXITWATCH_LINUX_READER_TIMELINESS_H_
#define EXITWATCH_LINUX_READER_TIMELINESS_H_

#include <cstdint>
#include <optional>

#include "linux/system/unique_fd.h"

namespace exitwatch {

// Tells whether the calling thread ran as soon as it was woken. If it did, what woke it happened
// just then. It did not if it waited for a CPU, was stopped, or had used up its quota.
class Timeliness {
 public:
  // Call this in the thread to be measured.
  void Open();
  void Close() { schedstat_.Reset(); }

  // Call this before sleeping.
  void Begin();

  // Call this after sleeping: how long the thread may have been kept from running; nothing if
  // unknown.
  std::optional<uint64_t> LateNs();

 private:
  struct Sample {
    uint64_t delay_ns = 0;      // total time spent waiting for a CPU
    int64_t sleeps = 0;         // voluntary context switches
    int64_t interruptions = 0;  // involuntary context switches
  };
  std::optional<Sample> Take();

  UniqueFd schedstat_;
  std::optional<Sample> begin_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_TIMELINESS_H_
