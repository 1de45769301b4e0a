#ifndef EXITWATCH_LINUX_READER_SILENCE_DETECTOR_H_
#define EXITWATCH_LINUX_READER_SILENCE_DETECTOR_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "linux/reader/canary.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// Detects a stream that stopped delivering without an error: the kernel counts its listeners in one
// number for the whole host, which any process can drive to zero (Linux 6.6 to 6.18 at least). Any
// event proves that the stream is alive. If none came for an interval, flies a canary.
class SilenceDetector {
 public:
  // `interval_ns`: 0 for only the first canary.
  SilenceDetector(Canary& canary, uint64_t interval_ns)
      : canary_(canary), interval_ns_(interval_ns) {}

  // Flies the first canary.
  SystemError Begin(uint64_t now_ns);
  bool IsProven() const { return flight_.time_ns == 0; }

  // An event, or a canary, came through the stream. `stamp_ns`: when the kernel made it.
  void OnEvent(uint64_t now_ns, uint64_t stamp_ns) {
    proof_ns_.store(now_ns, std::memory_order_relaxed);
    last_stamp_ns_ = std::max(last_stamp_ns_, stamp_ns);
  }
  void OnThreadExit(int32_t thread);

  // When Probe() is due; UINT64_MAX never.
  uint64_t Deadline() const;

  enum class Finding { kNothing, kSilent };

  // Call this after everything that had come was read. May start a canary's thread.
  // `has_overflown`: events were dropped since, which proves that there are some. If no thread can
  // be started for a canary, finds nothing, and tries again after an interval.
  Finding Probe(uint64_t now_ns, bool has_overflown);

  // When the stream was last certain to be alive. Not when an event was read: it may have waited
  // for its reader.
  uint64_t last_stamp_ns() const { return last_stamp_ns_; }

  // When something last came; 0 if nothing has. For any thread.
  uint64_t proof_ns() const { return proof_ns_.load(std::memory_order_relaxed); }

 private:
  void Postpone(uint64_t now_ns);

  Canary& canary_;
  const uint64_t interval_ns_;
  Canary::Flight flight_;  // the awaited one
  int lost_ = 0;           // canaries in a row that did not come back
  uint64_t not_before_ns_ = 0;
  std::atomic<uint64_t> proof_ns_{0};
  uint64_t last_stamp_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_SILENCE_DETECTOR_H_
