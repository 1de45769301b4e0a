#include "linux/bpf/ring_buffer.h"

#include <unistd.h>

namespace exitwatch {

namespace {

// Bits of a record's header, which is a 32-bit word followed by another.
constexpr uint32_t kBusy = 1u << 31;
constexpr uint32_t kDiscarded = 1u << 30;
constexpr size_t kHeaderBytes = 8;

}  // namespace

bool RingBuffer::Open(int map_fd, size_t bytes) {
  page_bytes_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  mask_ = bytes - 1;
  // The data is mapped twice in a row, so that a record that wraps around is contiguous.
  if (!consumer_.Map(map_fd, page_bytes_, PROT_READ | PROT_WRITE) ||
      !producer_.Map(map_fd, page_bytes_ + 2 * bytes, PROT_READ, page_bytes_)) {
    return false;
  }
  position_ = Committed();
  // Nobody but a reader that is broken has read what was never written.
  if (position_ > End() || End() - position_ > bytes) Advance(End());
  return true;
}

bool RingBuffer::HasRecord() const {
  size_t size = 0;
  uint64_t next_position = 0;
  return Next(&size, &next_position) != nullptr;
}

// `size` is 0 if the record was discarded.
const uint8_t* RingBuffer::Next(size_t* size, uint64_t* next_position) const {
  if (position_ >= End()) return nullptr;
  const size_t offset = page_bytes_ + (position_ & mask_);
  const uint32_t header = __atomic_load_n(producer_.At<uint32_t>(offset), __ATOMIC_ACQUIRE);
  if ((header & kBusy) != 0) return nullptr;
  const size_t length = header & ~(kBusy | kDiscarded);
  *next_position = position_ + ((kHeaderBytes + length + 7) & ~size_t{7});
  *size = (header & kDiscarded) != 0 ? 0 : length;
  return producer_.At<uint8_t>(offset + kHeaderBytes);
}

void RingBuffer::Advance(uint64_t position) {
  position_ = position;
  Commit(position);
}

void RingBuffer::Commit(uint64_t position) {
  __atomic_store_n(consumer_.At<uint64_t>(0), position, __ATOMIC_RELEASE);
}

}  // namespace exitwatch
