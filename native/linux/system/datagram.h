#ifndef EXITWATCH_LINUX_SYSTEM_DATAGRAM_H_
#define EXITWATCH_LINUX_SYSTEM_DATAGRAM_H_

#include <string>

#include "linux/system/system_error.h"

namespace exitwatch {

// Sends one datagram to a unix socket without waiting. A path that begins with '@' is in the
// abstract namespace, as in systemd (sd_notify(3)).
SystemError SendDatagram(const std::string& path, const std::string& text);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_DATAGRAM_H_
