#ifndef EXITWATCH_LINUX_READER_TIMELINESS_H_
#define EXITWATCH_LINUX_READER_TIMELINESS_H_

#include <cstdint>
#include <optional>

#include "linux/system/unique_fd.h"

namespace exitwatch {

// Whether the calling thread ran as soon as it was woken: what woke it happened just then, but not
// where it had to wait for a processor, was stopped, or had used up what it may use.
class Timeliness {
 public:
  // In the thread that it is about.
  void Open();
  void Close() { schedstat_.Reset(); }

  // To be called before sleeping.
  void Begin();

  // After it: for how long the thread may have been kept from running; nothing where that cannot be
  // told.
  std::optional<uint64_t> LateNs();

 private:
  struct Sample {
    uint64_t delay_ns = 0;      // waiting for a processor, in all
    int64_t sleeps = 0;         // voluntary context switches
    int64_t interruptions = 0;  // involuntary ones
  };
  std::optional<Sample> Take();

  UniqueFd schedstat_;
  std::optional<Sample> begin_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_TIMELINESS_H_
