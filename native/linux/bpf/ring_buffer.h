#ifndef EXITWATCH_LINUX_BPF_RING_BUFFER_H_
#define EXITWATCH_LINUX_BPF_RING_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "linux/system/memory_map.h"

namespace exitwatch {

// The reading side of a BPF ring buffer (the kernel's Documentation/bpf/ringbuf.rst).
class RingBuffer {
 public:
  // `bytes`: the map's size. Goes on where an earlier reader has stopped. False with errno set.
  bool Open(int map_fd, size_t bytes);

  // Whether there is a record to read. A record that is still being written does not count: its
  // writer checks afterwards whether somebody must be woken.
  bool HasRecord() const;

  // The position up to which we have read, and the one up to which records were written or are
  // being written.
  uint64_t position() const { return position_; }
  uint64_t End() const { return __atomic_load_n(producer_.At<uint64_t>(0), __ATOMIC_ACQUIRE); }

  // Calls `visit(const uint8_t* record, size_t size)` for at most `limit` records. False if there
  // may be more.
  template <typename Visit>
  bool Read(size_t limit, Visit visit) {
    for (size_t i = 0; i < limit; i++) {
      size_t size = 0;
      uint64_t next_position = 0;
      const uint8_t* record = Next(&size, &next_position);
      if (record == nullptr) return true;
      if (size != 0) visit(record, size);
      Advance(next_position);
    }
    return false;
  }

  // The same, but the records stay where they are, until Commit(): `visit(record, size, end)` gets
  // the position after each.
  template <typename Visit>
  bool ReadAhead(size_t limit, Visit visit) {
    for (size_t i = 0; i < limit; i++) {
      size_t size = 0;
      uint64_t next_position = 0;
      const uint8_t* record = Next(&size, &next_position);
      if (record == nullptr) return true;
      position_ = next_position;
      if (size != 0) visit(record, size, next_position);
    }
    return false;
  }

  // Reads on from where was committed.
  void Rewind() { position_ = Committed(); }

  // The kernel may overwrite what comes before this position.
  void Commit(uint64_t position);
  uint64_t Committed() const {
    return __atomic_load_n(consumer_.At<uint64_t>(0), __ATOMIC_RELAXED);
  }

 private:
  const uint8_t* Next(size_t* size, uint64_t* next_position) const;
  void Advance(uint64_t position);

  MemoryMap consumer_;  // one page: our position
  MemoryMap producer_;  // the kernel's position, and the data twice
  size_t page_bytes_ = 0;
  size_t mask_ = 0;
  uint64_t position_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_RING_BUFFER_H_
