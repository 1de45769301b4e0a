#ifndef EXITWATCH_LINUX_READER_SILENCE_DETECTOR_H_
#define EXITWATCH_LINUX_READER_SILENCE_DETECTOR_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "linux/reader/canary.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// Notices a stream that has ceased to tell anything, without an error: the kernel counts its
// listeners in one number for the whole host, which any process can drive to zero (Linux 6.6 to
// 6.18 at least). Whatever comes proves that the stream is alive; where nothing has come for an
// interval, a canary is let fly.
class SilenceDetector {
 public:
  // `interval_ns`: 0 for no canary but the first.
  SilenceDetector(Canary& canary, uint64_t interval_ns)
      : canary_(canary), interval_ns_(interval_ns) {}

  // Lets the first canary fly.
  SystemError Begin(uint64_t now_ns);
  bool IsProven() const { return flight_.time_ns == 0; }

  // Something came through the stream, or a canary did; and when the kernel made it.
  void OnEvent(uint64_t now_ns, uint64_t stamp_ns) {
    proof_ns_.store(now_ns, std::memory_order_relaxed);
    last_stamp_ns_ = std::max(last_stamp_ns_, stamp_ns);
  }
  void OnThreadExit(int32_t thread);

  // When Probe() has something to do; UINT64_MAX never.
  uint64_t Deadline() const;

  enum class Finding { kNothing, kSilent };

  // To be called after everything that had come was read; may start a canary's thread.
  // `has_overflown`: events were dropped since, so that there are some. If no thread can be had for
  // a canary, it finds nothing, and tries another after an interval.
  Finding Probe(uint64_t now_ns, bool has_overflown);

  // The stream was alive at this time, and nobody knows whether it was later: what came may have
  // waited for its reader.
  uint64_t last_stamp_ns() const { return last_stamp_ns_; }

  // When something last came; 0 before. From any thread.
  uint64_t proof_ns() const { return proof_ns_.load(std::memory_order_relaxed); }

 private:
  void Postpone(uint64_t now_ns);

  Canary& canary_;
  const uint64_t interval_ns_;
  Canary::Flight flight_;  // the one that is waited for
  int lost_ = 0;           // canaries that did not come back, in a row
  uint64_t not_before_ns_ = 0;
  std::atomic<uint64_t> proof_ns_{0};
  uint64_t last_stamp_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_SILENCE_DETECTOR_H_
