#include "linux/reader/ready_pidfds.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// How long ready pidfds wait for a stream that does not run dry: events have more detail.
constexpr uint64_t kLongestWaitNs = 100 * kMillisecond;

}  // namespace

void ReadyPidfds::BeginSleep(uint64_t now_ns, bool can_wake) {
  wait_begin_ns_ = now_ns;
  can_wake_ = can_wake;
  if (can_wake) timeliness_.Begin();
}

void ReadyPidfds::EndSleep(uint64_t now_ns, bool has_ready, bool was_stopped) {
  const uint64_t previous_wake_ns = std::exchange(wake_ns_, now_ns);
  const bool had_more = std::exchange(has_more_, false);
  if (!has_ready) return;
  if (!had_more) {
    // Pidfds that are ready now were not ready when we last took all ready ones. If they woke us,
    // and we ran at once, they became ready just now.
    const bool was_asleep = wake_ns_ - wait_begin_ns_ >= kMillisecond;
    idle_ns_ = was_asleep ? wait_begin_ns_ : previous_wake_ns - kMillisecond;
    const std::optional<uint64_t> late_ns = can_wake_ ? timeliness_.LateNs() : std::nullopt;
    if (was_asleep && !was_stopped && late_ns) {
      idle_ns_ = std::max(wait_begin_ns_, wake_ns_ - kMillisecond - *late_ns);
    }
  }
  Collect();
}

void ReadyPidfds::TakeMeanwhile(uint64_t now_ns) {
  idle_ns_ = std::exchange(wake_ns_, now_ns);
  Collect();
}

void ReadyPidfds::Collect() {
  if (ready_.empty()) {
    ready_ns_ = wake_ns_;
    not_ready_ns_ = idle_ns_;
  }
  has_more_ = pidfds_.Take(ready_);
  written_ = stream_.Written();  // no earlier: by now each of them has written its record
}

uint64_t ReadyPidfds::Deadline() const {
  return ready_.empty() ? std::numeric_limits<uint64_t>::max() : ready_ns_ + kLongestWaitNs;
}

bool ReadyPidfds::IsDue(bool is_empty) const {
  if (ready_.empty()) return false;
  const bool has_read = stream_.has_ebpf_filter() ? stream_.HasRead(written_) : is_empty;
  return has_read || IsOverdue();
}

std::vector<PidfdSet::Ready> ReadyPidfds::Take() { return std::exchange(ready_, {}); }

}  // namespace exitwatch
