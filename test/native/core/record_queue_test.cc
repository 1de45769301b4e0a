#include <vector>

#include "check.h"
#include "core/record_queue.h"
#include "tests.h"

namespace exitwatch {

namespace {

Record ExitRecord(double time_ns, uint32_t flags = Record::kLossless) {
  Record record;
  record.kind = Record::kExit;
  record.time_ns = time_ns;
  record.from_ns = time_ns;
  record.flags = flags;
  return record;
}

void AFullQueueTellsItsLossInPlace() {
  RecordQueue queue(3);
  for (int i = 1; i <= 7; i++) queue.Push({ExitRecord(i)});
  queue.Push({ExitRecord(8, Record::kWatched | Record::kLossless)});
  Record records[16];
  CHECK_EQUAL(queue.Take(records, 2), 2u);
  queue.Push({ExitRecord(9)});
  CHECK_EQUAL(queue.Take(records + 2, 14), 4u);
  const int kinds[] = {Record::kExit, Record::kExit, Record::kExit,
                       Record::kGap,  Record::kExit, Record::kGap};
  for (int i = 0; i < 6; i++) CHECK_EQUAL(records[i].kind, kinds[i]);
  CHECK_EQUAL(records[3].count, 4);
  CHECK_EQUAL(records[3].from_ns, 4);
  CHECK_EQUAL(records[3].time_ns, 7);
  CHECK_EQUAL(records[4].time_ns, 8);
  CHECK_EQUAL(records[5].count, 1);  // 9 came when there was no room yet
  const RecordQueue::Counts counts = queue.counts();
  CHECK_EQUAL(counts.received, counts.delivered + counts.lost);
  CHECK_EQUAL(counts.gaps, 2u);
}

// Across CPUs, ends do not come in the order of their times.
void AGapReachesFromTheEarliestLossToTheLatest() {
  RecordQueue queue(1);
  queue.Push({ExitRecord(1), ExitRecord(20), ExitRecord(10), ExitRecord(30), ExitRecord(25)});
  Record records[4];
  CHECK_EQUAL(queue.Take(records, 4), 2u);
  CHECK_EQUAL(records[1].count, 4);
  CHECK_EQUAL(records[1].from_ns, 10);
  CHECK_EQUAL(records[1].time_ns, 30);
}

void WhoLivedThroughAGapIsNotLossless() {
  RecordQueue queue(1);
  queue.Push({ExitRecord(1), ExitRecord(2)});
  Record records[4];
  CHECK_EQUAL(queue.Take(records, 4), 2u);
  Record older = ExitRecord(5);
  older.from_ns = 1;
  queue.Push({older});
  CHECK_EQUAL(queue.Take(records, 4), 1u);
  CHECK_EQUAL(records[0].flags & Record::kLossless, 0u);
  queue.Push({ExitRecord(6)});
  CHECK_EQUAL(queue.Take(records, 4), 1u);
  CHECK(records[0].flags & Record::kLossless);
}

}  // namespace

void test::RecordQueueTests() {
  AFullQueueTellsItsLossInPlace();
  AGapReachesFromTheEarliestLossToTheLatest();
  WhoLivedThroughAGapIsNotLossless();
}

}  // namespace exitwatch
