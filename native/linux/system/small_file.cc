#include "linux/system/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "linux/system/unique_fd.h"

namespace exitwatch {

std::string ReadSmallFile(const char* path) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  char text[4096];
  const ssize_t size = RetryOnEintr([&] { return read(file.Get(), text, sizeof(text)); });
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

}  // namespace exitwatch
