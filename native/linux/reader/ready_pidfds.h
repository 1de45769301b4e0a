#ifndef EXITWATCH_LINUX_READER_READY_PIDFDS_H_
#define EXITWATCH_LINUX_READER_READY_PIDFDS_H_

#include <cstdint>
#include <vector>

#include "linux/connector/connector_stream.h"
#include "linux/reader/timeliness.h"
#include "linux/system/pidfd_set.h"

namespace exitwatch {

// The pidfds that are ready, and since when at most: a process whose pidfd was not ready at some
// time was alive then. They wait here for the stream, which takes precedence.
class ReadyPidfds {
 public:
  ReadyPidfds(PidfdSet& pidfds, const ConnectorStream& stream) : pidfds_(pidfds), stream_(stream) {}

  // For the thread that sleeps.
  void Open() { timeliness_.Open(); }
  void Close() { timeliness_.Close(); }
  void Begin(uint64_t now_ns) { wait_begin_ns_ = wake_ns_ = now_ns; }

  // `can_wake`: a pidfd may end the sleep.
  void BeginSleep(uint64_t now_ns, bool can_wake);

  // `has_ready`: some are ready. `was_stopped`: the process was stopped meanwhile.
  void EndSleep(uint64_t now_ns, bool has_ready, bool was_stopped);

  // The same if the thread slept elsewhere, and some are ready.
  void TakeMeanwhile(uint64_t now_ns);

  // When they must stop waiting for the stream.
  uint64_t Deadline() const;

  // Whether they are due: the stream was read beyond them, or they have waited long enough.
  // `is_empty`: the stream has since been read empty.
  bool IsDue(bool is_empty) const;
  bool IsOverdue() const { return !ready_.empty() && wake_ns_ >= Deadline(); }

  // When none of them was ready yet.
  uint64_t not_ready_ns() const { return not_ready_ns_; }

  std::vector<PidfdSet::Ready> Take();

 private:
  void Collect();

  PidfdSet& pidfds_;
  const ConnectorStream& stream_;
  Timeliness timeliness_;
  std::vector<PidfdSet::Ready> ready_;
  bool has_more_ = true;  // there were more than we took
  bool can_wake_ = false;
  uint64_t wait_begin_ns_ = 0;
  uint64_t wake_ns_ = 0;
  uint64_t idle_ns_ = 0;       // when those that are ready now were not
  uint64_t ready_ns_ = 0;      // when the first of those that wait was taken
  uint64_t not_ready_ns_ = 0;  // when that one was not ready yet
  uint64_t written_ = 0;       // by the stream when they were taken
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_READY_PIDFDS_H_
