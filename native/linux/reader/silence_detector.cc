#include "linux/reader/silence_detector.h"

#include <algorithm>
#include <limits>

namespace exitwatch {

namespace {

// A canary must be back within this part of the interval. If two in a row are not, the stream is
// silent: after one and a half intervals at most.
constexpr int kPart = 4;
constexpr int kMostLost = 2;

}  // namespace

SystemError SilenceDetector::Begin(uint64_t now_ns) {
  lost_ = 0;
  return canary_.Fly(now_ns, now_ns, &flight_);
}

void SilenceDetector::OnThreadExit(int32_t thread) {
  if (thread == flight_.thread) flight_ = {};
}

uint64_t SilenceDetector::Deadline() const {
  if (interval_ns_ == 0) return std::numeric_limits<uint64_t>::max();
  if (flight_.time_ns != 0) return flight_.time_ns + interval_ns_ / kPart;
  return std::max(proof_ns() + interval_ns_, not_before_ns_);
}

SilenceDetector::Finding SilenceDetector::Probe(uint64_t now_ns, bool has_overflown) {
  if (has_overflown) OnEvent(now_ns, 0);
  if (proof_ns() > flight_.time_ns) {
    flight_ = {};
    lost_ = 0;
  }
  if (now_ns < Deadline()) return Finding::kNothing;
  const bool was_flying = flight_.time_ns != 0;
  if (was_flying && Canary::IsFlying(flight_)) {
    flight_.time_ns = now_ns;  // the machine is too busy to let the thread exit
    return Finding::kNothing;
  }
  if (was_flying && ++lost_ == kMostLost) return Finding::kSilent;
  if (canary_.Fly(was_flying ? flight_.time_ns : proof_ns(), now_ns, &flight_)) Postpone(now_ns);
  return Finding::kNothing;
}

void SilenceDetector::Postpone(uint64_t now_ns) {
  flight_ = {};
  lost_ = 0;
  not_before_ns_ = now_ns + interval_ns_;
}

}  // namespace exitwatch
