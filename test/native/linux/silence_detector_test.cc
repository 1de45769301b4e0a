#include "linux/silence_detector.h"

#include <chrono>
#include <thread>

#include "check.h"
#include "tests.h"

namespace exitwatch {

namespace {

// Times are ours alone, the canaries are real threads.
constexpr uint64_t kInterval = 4000;

// Until the latest canary is gone: one that is still to end is not missed.
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
  CHECK(!detector.IsSilent(1999, false));
  CHECK(!detector.IsSilent(2001, false));
  AwaitLanding(canary);
  CHECK(detector.IsSilent(3002, false));
}

void WhatCameInBetweenProvesThatItWasNone() {
  Canary canary;
  SilenceDetector detector(canary, kInterval);
  CHECK(!detector.Begin(1000));
  AwaitLanding(canary);
  CHECK(!detector.IsSilent(2001, false));  // the first is lost
  AwaitLanding(canary);
  detector.OnEvent(2500, 2500);
  CHECK(!detector.IsSilent(2600, false));
  CHECK(!detector.IsSilent(6600, false));  // another flies
  AwaitLanding(canary);
  CHECK(!detector.IsSilent(7700, false));  // and is lost: the first since
  AwaitLanding(canary);
  CHECK(detector.IsSilent(8800, false));
}

}  // namespace

void test::SilenceDetectorTests() {
  TwoLostCanariesInARowAreSilence();
  WhatCameInBetweenProvesThatItWasNone();
}

}  // namespace exitwatch
