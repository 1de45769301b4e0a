#include <map>

#include "check.h"
#include "core/watch_set.h"
#include "tests.h"

namespace exitwatch {

namespace {

void TheWatchOfAReusedPidIsNotTaken() {
  WatchSet watches;
  Watch watch;
  watch.pid = 10;
  watch.process.start_ticks = 100;
  watch.process.inode = 7;
  watch.since_ns = 100;
  watches.Add(watch);
  watch.process.start_ticks = 200;
  watch.process.inode = 8;
  watch.since_ns = 200;
  watches.Add(watch);
  CHECK(!watches.Take({10, 0, 9, 0}, 300));  // neither's inode
  CHECK(!watches.Take({10, 0, 0, 0}, 50));   // ended before either was watched
  CHECK_EQUAL(watches.InodeAt(10, 150), 7u);
  CHECK_EQUAL(watches.InodeAt(10, 50), 0u);
  CHECK_EQUAL(watches.Take({10, 0, 0, 0}, 150)->process.inode, 7u);
  CHECK_EQUAL(watches.Take({10, 0, 8, 0}, 150)->process.inode, 8u);
  CHECK(!watches.Contains(10));
}

}  // namespace

void test::WatchSetTests() { TheWatchOfAReusedPidIsNotTaken(); }

}  // namespace exitwatch
