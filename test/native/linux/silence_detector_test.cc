#include "linux/reader/silence_detector.h"

#include <chrono>
#include <thread>

#include "check.h"
#include "tests.h"

namespace exitwatch {

namespace {

// Canaries are real threads, but the test sets the times.
using Finding = SilenceDetector::Finding;

constexpr uint64_t kInterval = 4000;

// Waits until the latest canary has ended: a living canary is not missed.
void AwaitLanding(Canary& canary) {
  Canary::Flight latest;
  CHECK(!canary.Fly(0, 0, &latest));
  while (Canary::IsFlying(latest)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void TwoLostCanariesInARowAreSilence() {
  Canary canary;
  SilenceDetector detector(canary, kInterval);
  CHECK(!detector.Begin(1000));
  AwaitLanding(canary);
  CHECK(detector.Probe(1999, false) == Finding::kNothing);
  CHECK(detector.Probe(2001, false) == Finding::kNothing);
  AwaitLanding(canary);
  CHECK(detector.Probe(3002, false) == Finding::kSilent);
}

void AnEventInBetweenDisprovesSilence() {
  Canary canary;
  SilenceDetector detector(canary, kInterval);
  CHECK(!detector.Begin(1000));
  AwaitLanding(canary);
  CHECK(detector.Probe(2001, false) == Finding::kNothing);  // the first canary is lost
  AwaitLanding(canary);
  detector.OnEvent(2500, 2500);
  CHECK(detector.Probe(2600, false) == Finding::kNothing);
  CHECK(detector.Probe(6600, false) == Finding::kNothing);  // another one flies
  AwaitLanding(canary);
  CHECK(detector.Probe(7700, false) == Finding::kNothing);  // lost, too: the first since the event
  AwaitLanding(canary);
  CHECK(detector.Probe(8800, false) == Finding::kSilent);
}

}  // namespace

void test::SilenceDetectorTests() {
  TwoLostCanariesInARowAreSilence();
  AnEventInBetweenDisprovesSilence();
}

}  // namespace exitwatch
