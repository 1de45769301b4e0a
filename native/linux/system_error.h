#ifndef EXITWATCH_LINUX_SYSTEM_ERROR_H_
#define EXITWATCH_LINUX_SYSTEM_ERROR_H_

#include <cerrno>

namespace exitwatch {

// Why something could not be done; src/errors.ts has the sentences. The order is known there.
enum class Failure : int {
  kNone = 0,
  kSystem,           // see errno and syscall
  kForeignNetwork,   // not in the host's network namespace
  kForeignPid,       // not in the host's pid namespace
  kForeignUser,      // not in the host's user namespace
  kNotPermitted,     // before Linux 6.6: CAP_NET_ADMIN
  kNoConnector,      // the kernel was built without CONFIG_CONNECTOR or CONFIG_PROC_EVENTS
  kNoPidfd,          // pidfd_open(2) is missing or forbidden
  kNoProc,           // /proc is not mounted, or is another pid namespace's
  kSilent,           // subscribed, but events do not arrive
  kDescriptorLimit,  // RLIMIT_NOFILE leaves none to spare
};

struct SystemError {
  Failure code = Failure::kNone;
  int number = 0;            // errno
  const char* syscall = "";  // a literal of at most 15 characters

  explicit operator bool() const { return code != Failure::kNone; }

  // A lack of descriptors, threads or memory: it may be over soon.
  bool IsShortage() const {
    return code == Failure::kSystem && (number == EMFILE || number == ENFILE || number == ENOMEM ||
                                        number == ENOBUFS || number == EAGAIN);
  }
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_ERROR_H_
