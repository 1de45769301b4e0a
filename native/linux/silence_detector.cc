#include "linux/silence_detector.h"

#include <limits>

namespace exitwatch {

namespace {

// A canary has to be back within this part of the interval; where two in a row are not, the stream
// is silent. That makes one and a half intervals at most.
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
  return flight_.time_ns != 0 ? flight_.time_ns + interval_ns_ / kPart : proof_ns() + interval_ns_;
}

SilenceDetector::Verdict SilenceDetector::Check(uint64_t now_ns, bool has_overflown,
                                                SystemError* error) {
  if (has_overflown) OnEvent(now_ns);
  if (proof_ns() > flight_.time_ns) {
    flight_ = {};
    lost_ = 0;
  }
  if (now_ns < Deadline()) return Verdict::kFine;
  const bool was_flying = flight_.time_ns != 0;
  if (was_flying && Canary::IsFlying(flight_)) {
    flight_.time_ns = now_ns;  // the machine is too busy to let it end
    return Verdict::kFine;
  }
  if (was_flying && ++lost_ == kMostLost) return Verdict::kSilent;
  *error = canary_.Fly(was_flying ? flight_.time_ns : proof_ns(), now_ns, &flight_);
  return *error ? Verdict::kFailed : Verdict::kFine;
}

}  // namespace exitwatch
