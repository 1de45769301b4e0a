#include "core/queues/signal_queue.h"

#include "check.h"
#include "tests.h"

namespace exitwatch::test {

void SignalQueueTests() {
  SignalQueue queue(2);
  SignalRecord record = {};
  for (int32_t pid = 1; pid <= 2; pid++) {
    record.pid = pid;
    CHECK(queue.Push(record));
  }
  // The caller counts records that do not fit.
  CHECK(!queue.Push(record));
  CHECK_EQUAL(queue.Depth(), 2u);
  SignalRecord taken[3] = {};
  CHECK_EQUAL(queue.Take(taken, 1), 1u);
  CHECK_EQUAL(taken[0].pid, 1);
  CHECK_EQUAL(queue.Take(taken, 3), 1u);
  CHECK_EQUAL(taken[0].pid, 2);
  CHECK_EQUAL(queue.Take(taken, 3), 0u);
}

}  // namespace exitwatch::test
