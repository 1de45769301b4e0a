#ifndef EXITWATCH_LINUX_SYSTEM_MEMORY_MAP_H_
#define EXITWATCH_LINUX_SYSTEM_MEMORY_MAP_H_

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace exitwatch {

// Owns one memory mapping of a file.
class MemoryMap {
 public:
  MemoryMap() = default;
  MemoryMap(MemoryMap&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MemoryMap& operator=(MemoryMap&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MemoryMap() {
    if (data_ != nullptr) munmap(data_, size_);
  }

  // False with errno set.
  bool Map(int fd, size_t size, int protection, size_t offset = 0, int sharing = MAP_SHARED) {
    void* data = mmap(nullptr, size, protection, sharing, fd, static_cast<off_t>(offset));
    if (data == MAP_FAILED) return false;
    if (data_ != nullptr) munmap(data_, size_);
    data_ = data;
    size_ = size;
    return true;
  }

  template <typename T>
  T* At(size_t offset) const {
    return reinterpret_cast<T*>(static_cast<char*>(data_) + offset);
  }

  explicit operator bool() const { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_MEMORY_MAP_H_
