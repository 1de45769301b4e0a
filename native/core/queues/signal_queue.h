#ifndef EXITWATCH_CORE_QUEUES_SIGNAL_QUEUE_H_
#define EXITWATCH_CORE_QUEUES_SIGNAL_QUEUE_H_

#include <cstddef>
#include <deque>
#include <mutex>

#include "abi/signal_record.h"

namespace exitwatch {

// The bounded queue of signals between the reader thread and JavaScript.
class SignalQueue {
 public:
  explicit SignalQueue(size_t limit) : limit_(limit) {}

  // False if the queue is full.
  bool Push(const SignalRecord& record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (records_.size() >= limit_) return false;
    records_.push_back(record);
    return true;
  }

  // Moves at most `capacity` records, and returns their number.
  size_t Take(SignalRecord* records, size_t capacity) {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t count = 0;
    for (; count < capacity && !records_.empty(); count++) {
      records[count] = records_.front();
      records_.pop_front();
    }
    return count;
  }

  size_t Depth() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return records_.size();
  }

 private:
  std::mutex mutex_;
  const size_t limit_;
  std::deque<SignalRecord> records_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_QUEUES_SIGNAL_QUEUE_H_
