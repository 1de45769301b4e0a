#include "linux/system/own_children.h"

#include "check.h"
#include "tests.h"

namespace exitwatch {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Pids beyond PID_MAX_LIMIT, which no process has.
constexpr int32_t kFirst = 5'000'001;
constexpr int32_t kSecondPid = 5'000'002;

GroupIdentity OfPid(int32_t pid) { return {pid, 0, 0, 0, 0}; }

void AProcessWithThePidOfAnEndedChildIsNotAChild() {
  OwnChildren::Add({kFirst, 100, 0, 0, 0});
  OwnChildren::Add({kSecondPid, 100, 0, 0, 0});
  CHECK(OwnChildren::Contains(OfPid(kSecondPid), 50 * kSecond));
  OwnChildren::End(kSecondPid, 10 * kSecond);
  CHECK(OwnChildren::Contains(OfPid(kSecondPid), 10 * kSecond));
  CHECK(!OwnChildren::Contains(OfPid(kSecondPid), 11 * kSecond));
  // The start time identifies a child at any time, and excludes other processes.
  CHECK(OwnChildren::Contains({kSecondPid, 100, 0, 0, 0}, 11 * kSecond));
  CHECK(!OwnChildren::Contains({kSecondPid, 101, 0, 0, 0}, 10 * kSecond));
  CHECK(OwnChildren::Contains(OfPid(kFirst), 50 * kSecond));
}

}  // namespace

void test::OwnChildrenTests() { AProcessWithThePidOfAnEndedChildIsNotAChild(); }

}  // namespace exitwatch
