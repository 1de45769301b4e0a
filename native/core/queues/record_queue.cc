#include "core/queues/record_queue.h"

#include <algorithm>

namespace exitwatch {

void RecordQueue::Push(const std::vector<Record>& records) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Record& record : records) {
    if (const auto* exit = std::get_if<ExitRecord>(&record)) {
      PushExit(*exit);
      continue;
    }
    FlushOverflow();
    if (const auto* gap = std::get_if<GapRecord>(&record)) {
      counts_.gaps++;
      counts_.lost += static_cast<uint64_t>(gap->lost);
    }
    records_.push_back(record);
  }
}

void RecordQueue::PushExit(const ExitRecord& record) {
  counts_.received++;
  counts_.last_event_ms = std::max(counts_.last_event_ms, record.time_ns / 1e6 + record.clock_ms);
  if (records_.size() >= limit_ && (record.flags & ExitRecord::kWatched) == 0) {
    counts_.lost++;
    if (!overflow_) {
      overflow_.emplace();
      overflow_->reason = GapReason::kQueueLimit;
      overflow_->from_ns = record.time_ns;
      counts_.gaps++;
    }
    overflow_->from_ns = std::min(overflow_->from_ns, record.time_ns);
    overflow_->to_ns = std::max(overflow_->to_ns, record.time_ns);
    overflow_->clock_ms = record.clock_ms;
    overflow_->lost++;
    return;
  }
  FlushOverflow();
  ExitRecord exit = record;
  if (gap_end_ns_ > record.from_ns) exit.flags &= ~ExitRecord::kLossless;
  records_.emplace_back(exit);
}

void RecordQueue::FlushOverflow() {
  if (!overflow_) return;
  gap_end_ns_ = std::max(gap_end_ns_, overflow_->to_ns);
  records_.emplace_back(*overflow_);
  overflow_.reset();
}

size_t RecordQueue::Depth() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_.size() + (overflow_ ? 1 : 0);
}

RecordQueue::Counts RecordQueue::counts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Counts counts = counts_;
  counts.depth = records_.size();
  return counts;
}

}  // namespace exitwatch
