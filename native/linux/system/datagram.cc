#include "linux/system/datagram.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "linux/system/unique_fd.h"

namespace exitwatch {

SystemError SendDatagram(const std::string& path, const std::string& text) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return {Failure::kSystem, ENAMETOOLONG, "sendto"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return {Failure::kSystem, errno, "socket"};
  const socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const auto sent = RetryOnEintr([&] {
    return sendto(fd.Get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                  reinterpret_cast<const sockaddr*>(&address), size);
  });
  if (sent < 0) return {Failure::kSystem, errno, "sendto"};
  return {};
}

}  // namespace exitwatch
