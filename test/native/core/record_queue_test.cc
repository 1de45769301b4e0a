#include <variant>
#include <vector>

#include "check.h"
#include "core/queues/record_queue.h"
#include "tests.h"

namespace exitwatch {

namespace {

ExitRecord ExitAt(double time_ns, uint32_t flags = ExitRecord::kLossless) {
  ExitRecord record;
  record.time_ns = time_ns;
  record.from_ns = time_ns;
  record.flags = flags;
  return record;
}

std::vector<Record> Take(RecordQueue& queue, size_t capacity) {
  std::vector<Record> records;
  const auto visit = [&](const Record& record) { records.push_back(record); };
  const size_t count = queue.Take(capacity, visit);
  CHECK_EQUAL(count, records.size());
  return records;
}

void AFullQueueReportsItsLossInPlace() {
  RecordQueue queue(3);
  for (int i = 1; i <= 7; i++) queue.Push({ExitAt(i)});
  queue.Push({ExitAt(8, ExitRecord::kWatched | ExitRecord::kLossless)});
  std::vector<Record> records = Take(queue, 2);
  CHECK_EQUAL(records.size(), 2u);
  queue.Push({ExitAt(9)});
  const std::vector<Record> later = Take(queue, 14);
  CHECK_EQUAL(later.size(), 4u);
  records.insert(records.end(), later.begin(), later.end());
  const bool is_gap[] = {false, false, false, true, false, true};
  for (size_t i = 0; i < 6; i++) {
    CHECK_EQUAL(std::holds_alternative<GapRecord>(records[i]), is_gap[i]);
    CHECK_EQUAL(std::holds_alternative<ExitRecord>(records[i]), !is_gap[i]);
  }
  const auto& gap = std::get<GapRecord>(records[3]);
  CHECK(gap.reason == GapReason::kQueueLimit);
  CHECK_EQUAL(gap.lost, 4);
  CHECK_EQUAL(gap.from_ns, 4);
  CHECK_EQUAL(gap.to_ns, 7);
  CHECK_EQUAL(std::get<ExitRecord>(records[4]).time_ns, 8);
  CHECK_EQUAL(std::get<GapRecord>(records[5]).lost, 1);  // 9 came before there was room again
  const RecordQueue::Counts counts = queue.counts();
  CHECK_EQUAL(counts.received, counts.delivered + counts.lost);
  CHECK_EQUAL(counts.gaps, 2u);
}

// Ends on different CPUs do not arrive in the order of their times.
void AGapSpansFromTheEarliestLossToTheLatest() {
  RecordQueue queue(1);
  queue.Push({ExitAt(1), ExitAt(20), ExitAt(10), ExitAt(30), ExitAt(25)});
  const std::vector<Record> records = Take(queue, 4);
  CHECK_EQUAL(records.size(), 2u);
  const auto& gap = std::get<GapRecord>(records[1]);
  CHECK_EQUAL(gap.lost, 4);
  CHECK_EQUAL(gap.from_ns, 10);
  CHECK_EQUAL(gap.to_ns, 30);
}

void AProcessThatLivedThroughAGapIsNotLossless() {
  RecordQueue queue(1);
  queue.Push({ExitAt(1), ExitAt(2)});
  CHECK_EQUAL(Take(queue, 4).size(), 2u);
  ExitRecord older = ExitAt(5);
  older.from_ns = 1;
  queue.Push({older});
  std::vector<Record> records = Take(queue, 4);
  CHECK_EQUAL(records.size(), 1u);
  CHECK_EQUAL(std::get<ExitRecord>(records[0]).flags & ExitRecord::kLossless, 0u);
  queue.Push({ExitAt(6)});
  records = Take(queue, 4);
  CHECK_EQUAL(records.size(), 1u);
  CHECK(std::get<ExitRecord>(records[0]).flags & ExitRecord::kLossless);
}

}  // namespace

void test::RecordQueueTests() {
  AFullQueueReportsItsLossInPlace();
  AGapSpansFromTheEarliestLossToTheLatest();
  AProcessThatLivedThroughAGapIsNotLossless();
}

}  // namespace exitwatch
