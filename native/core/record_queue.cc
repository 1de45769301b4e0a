#include "core/record_queue.h"

#include <algorithm>

namespace exitwatch {

void RecordQueue::Push(const std::vector<Record>& records) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Record& record : records) PushOne(record);
}

void RecordQueue::PushOne(const Record& record) {
  if (record.kind != Record::kExit) {
    FlushOverflow();
    if (record.kind == Record::kGap) {
      counts_.gaps++;
      counts_.lost += static_cast<uint64_t>(record.count);
    }
    records_.push_back(record);
    return;
  }

  counts_.received++;
  counts_.last_event_ms = std::max(counts_.last_event_ms, record.time_ns / 1e6 + record.clock_ms);
  if (records_.size() >= limit_ && (record.flags & Record::kWatched) == 0) {
    counts_.lost++;
    if (!overflow_) {
      overflow_.emplace();
      overflow_->kind = Record::kGap;
      overflow_->flags = Record::kQueueLimit;
      overflow_->from_ns = record.time_ns;
      counts_.gaps++;
    }
    overflow_->from_ns = std::min(overflow_->from_ns, record.time_ns);
    overflow_->time_ns = std::max(overflow_->time_ns, record.time_ns);
    overflow_->clock_ms = record.clock_ms;
    overflow_->count++;
    return;
  }
  FlushOverflow();
  records_.push_back(record);
  if (gap_end_ns_ > record.from_ns) records_.back().flags &= ~Record::kLossless;
}

void RecordQueue::FlushOverflow() {
  if (!overflow_) return;
  gap_end_ns_ = std::max(gap_end_ns_, overflow_->time_ns);
  records_.push_back(*overflow_);
  overflow_.reset();
}

size_t RecordQueue::Take(Record* records, size_t capacity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (records_.size() < capacity) FlushOverflow();
  const size_t count = std::min(capacity, records_.size());
  for (size_t i = 0; i < count; i++) {
    records[i] = records_.front();
    if (records[i].kind == Record::kExit) counts_.delivered++;
    records_.pop_front();
  }
  return count;
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
