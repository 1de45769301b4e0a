#include <map>

#include "check.h"
#include "core/groups/watch_set.h"
#include "tests.h"

namespace exitwatch {

namespace {

void AReusedPidDoesNotResolveTheOldWatch() {
  WatchSet watches;
  Watch watch;
  watch.pid = 10;
  watch.process.start_ticks = 100;
  watch.process.inode = 7;
  watch.since_ns = 100;
  watches.Add(watch, [] { return uint64_t{0}; });
  watch.process.start_ticks = 200;
  watch.process.inode = 8;
  watch.since_ns = 200;
  watches.Add(watch, [] { return uint64_t{0}; });
  CHECK(!watches.Take({10, 0, 9, 0}, 300));  // the inode of neither
  CHECK(!watches.Take({10, 0, 0, 0}, 50));   // ended before either watch began
  CHECK_EQUAL(watches.ListOf(10).size(), 2u);
  CHECK_EQUAL(watches.ListOf(10).back().process.inode, 8u);
  CHECK_EQUAL(watches.Take({10, 0, 0, 0}, 150)->process.inode, 7u);
  CHECK_EQUAL(watches.Take({10, 0, 8, 0}, 150)->process.inode, 8u);
  CHECK(!watches.Contains(10));
}

// An event of before the second watch is the first one's; a later one is the second one's.
void WithoutAnInodeTheTimeDecides() {
  WatchSet watches;
  Watch watch;
  watch.pid = 10;
  for (const uint64_t since_ns : {100, 200}) {
    watch.process.start_ticks = since_ns;
    watch.since_ns = since_ns;
    watches.Add(watch, [] { return uint64_t{0}; });
  }
  CHECK_EQUAL(watches.Take({10, 0, 0, 0}, 300)->since_ns, 200u);
  CHECK_EQUAL(watches.Take({10, 0, 0, 0}, 300)->since_ns, 100u);
}

void AWatchIsArmedOnceItIsFollowed() {
  WatchSet watches;
  uint64_t now_ns = 1;
  watches.Follow([&](int32_t /*pid*/, bool /*is_watched*/) { now_ns = 2; });
  Watch watch;
  watch.pid = 10;
  watches.Add(watch, [&] { return now_ns; });
  CHECK_EQUAL(watches.Take({10, 0, 0, 0}, 1)->armed_ns, 2u);
}

void WatchesAreCountedByTheirReporter() {
  WatchSet watches;
  Watch watch;
  watch.pid = 10;
  watches.Add(watch, [] { return uint64_t{0}; });
  watch.pid = 11;
  watch.pidfd = 3;
  watches.Add(watch, [] { return uint64_t{0}; });
  CHECK_EQUAL(watches.with_pidfd(), 1u);
  CHECK_EQUAL(watches.without_pidfd(), 1u);
  CHECK(watches.Take({11, 0, 0, 0}, 1));
  CHECK(watches.Remove(10, 0, 0));
  CHECK_EQUAL(watches.with_pidfd(), 0u);
  CHECK_EQUAL(watches.without_pidfd(), 0u);
}

void APidIsFollowedUntilItsLastWatchIsGone() {
  WatchSet watches;
  std::map<int32_t, bool> followed;
  watches.Follow([&](int32_t pid, bool is_watched) { followed[pid] = is_watched; });
  Watch watch;
  watch.pid = 10;
  for (const uint64_t owner : {7, 8}) {
    watch.process.start_ticks = 100 * owner;
    watch.process.inode = owner;
    watches.Add(watch, [] { return uint64_t{0}; });
  }
  CHECK(watches.Remove(10, 700, 7));
  CHECK(followed[10]);
  // A new follower hears of the remaining watch.
  bool is_told = false;
  watches.Follow([&](int32_t pid, bool is_watched) { is_told = pid == 10 && is_watched; });
  CHECK(is_told);
  watches.Follow([&](int32_t pid, bool is_watched) { followed[pid] = is_watched; });
  CHECK(watches.Take({10, 0, 8, 0}, 300));
  CHECK(!followed[10]);
}

}  // namespace

void test::WatchSetTests() {
  AReusedPidDoesNotResolveTheOldWatch();
  WithoutAnInodeTheTimeDecides();
  AWatchIsArmedOnceItIsFollowed();
  WatchesAreCountedByTheirReporter();
  APidIsFollowedUntilItsLastWatchIsGone();
}

}  // namespace exitwatch
