#ifndef EXITWATCH_LINUX_SYSTEM_SMALL_FILE_H_
#define EXITWATCH_LINUX_SYSTEM_SMALL_FILE_H_

#include <string>

namespace exitwatch {

// The first 4 KiB of a file; empty if it cannot be read.
std::string ReadSmallFile(const char* path);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_SMALL_FILE_H_
