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

// The bounded queue between the reader thread and JavaScript. What does not fit is counted and told
// as one gap, in its place: nothing that came later passes it. Ends of watched processes always
// fit: their number is bounded by the watches.
class RecordQueue {
 public:
  struct Counts {
    uint64_t received = 0;   // exits that were put in, or would have been
    uint64_t delivered = 0;  // exits that were taken out
    uint64_t lost = 0;       // as told by gaps, or to be told by the next
    uint64_t gaps = 0;
    size_t depth = 0;
    double last_event_ms = 0;  // CLOCK_REALTIME of the latest exit; 0 before the first
  };

  explicit RecordQueue(size_t limit) : limit_(limit) {}

  void Push(const std::vector<Record>& records);

  // Takes at most `capacity` records, and calls `visit` for each; their number.
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

  // How many records there are to take now.
  size_t Depth();

  Counts counts();

 private:
  void PushExit(const ExitRecord& record);
  void FlushOverflow();

  std::mutex mutex_;
  const size_t limit_;
  std::deque<Record> records_;
  std::optional<GapRecord> overflow_;  // the gap that grows while the queue is full
  double gap_end_ns_ = 0;              // of the latest gap by our own limit
  Counts counts_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_QUEUES_RECORD_QUEUE_H_
