#ifndef EXITWATCH_CORE_QUEUES_EXIT_RATE_H_
#define EXITWATCH_CORE_QUEUES_EXIT_RATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace exitwatch {

// Detects when exits come so fast that they are read and delivered in bulk: more than 10 exits
// ahead of a rate of 5,000 per second.
class ExitRate {
 public:
  // `since_ns`: they came since then.
  void Add(size_t exits, uint64_t since_ns, uint64_t now_ns) {
    due_ns_ = std::min(std::max(due_ns_, since_ns) + exits * kExitNs, now_ns + kMostAheadNs);
  }

  bool IsStorm(uint64_t now_ns) const { return due_ns_ > now_ns + kStormNs; }

 private:
  static constexpr uint64_t kExitNs = 200'000;
  static constexpr uint64_t kStormNs = 10 * kExitNs;
  static constexpr uint64_t kMostAheadNs = 20 * kExitNs;

  uint64_t due_ns_ = 0;  // when all exits so far would have come at that rate
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_QUEUES_EXIT_RATE_H_
