#ifndef EXITWATCH_LINUX_SYSTEM_DATAGRAM_H_
#define EXITWATCH_LINUX_SYSTEM_DATAGRAM_H_

#include <string>
#include <vector>

#include "linux/system/system_error.h"

namespace exitwatch {

// Sends one datagram to a unix socket, with copies of these descriptors; waits only if there are
// any, for at most 2 s. A path that begins with '@' is in the abstract namespace, as in systemd
// (sd_notify(3)).
SystemError SendDatagram(const std::string& path, const std::string& text,
                         const std::vector<int>& descriptors);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_DATAGRAM_H_
