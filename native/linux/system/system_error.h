#ifndef EXITWATCH_LINUX_SYSTEM_SYSTEM_ERROR_H_
#define EXITWATCH_LINUX_SYSTEM_SYSTEM_ERROR_H_

#include <cerrno>

#include "abi/failure.h"

namespace exitwatch {

struct SystemError {
  Failure code = Failure::kNone;
  int number = 0;            // errno
  const char* syscall = "";  // a literal of at most 15 characters

  explicit operator bool() const { return code != Failure::kNone; }

  // A temporary shortage of descriptors, threads or memory.
  bool IsShortage() const {
    return code == Failure::kSystem && (number == EMFILE || number == ENFILE || number == ENOMEM ||
                                        number == ENOBUFS || number == EAGAIN);
  }
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_SYSTEM_ERROR_H_
