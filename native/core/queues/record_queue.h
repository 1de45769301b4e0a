#ifndef EXITWATCH_CORE_QUEUES_RECORD_QUEUE_H_
#define EXITWATCH_CORE_QUEUES_RECORD_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "abi/record.h"

namespace exitwatch {

// The bounded queue between the reader thread and JavaScript. Exits that do not fit are counted and
// reported as one gap in their place: no later record overtakes it. Exits of watched processes
// always fit, since the number of watches bounds them.
class RecordQueue {
 public:
  struct Counts {
    uint64_t received = 0;   // exits that were pushed, including those that did not fit
    uint64_t delivered = 0;  // exits that were taken
    uint64_t lost = 0;       // reported by gaps, or to be reported by the next one
    uint64_t gaps = 0;
    size_t depth = 0;
    double last_event_ms = 0;  // CLOCK_REALTIME of the latest exit; 0 before the first
  };

  explicit RecordQueue(size_t limit) : limit_(limit) {}

  void Push(const std::vector<Record>& records);

  // Removes at most `capacity` records, calls `visit` for each, and returns their number.
  template <typename Visit>
  size_t Take(size_t capacity, Visit visit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (records_.size() < capacity) FlushOverflow();
    const size_t count = std::min(capacity, records_.size());
    for (size_t i = 0; i < count; i++) {
      if (std::holds_alternative<ExitRecord>(records_.front())) counts_.delivered++;
      visit(std::as_const(records_.front()));
      records_.pop_front();
    }
    return count;
  }

  // The number of records that can be taken now.
  size_t Depth();

  Counts counts();

 private:
  void PushExit(const ExitRecord& record);
  void FlushOverflow();

  std::mutex mutex_;
  const size_t limit_;
  std::deque<Record> records_;
  std::optional<GapRecord> overflow_;  // the gap that grows while the queue is full
  double gap_end_ns_ = 0;              // end of the latest gap that our own limit caused
  Counts counts_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_QUEUES_RECORD_QUEUE_H_
