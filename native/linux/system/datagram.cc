#include "linux/system/datagram.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "linux/system/unique_fd.h"

namespace exitwatch {

SystemError SendDatagram(const std::string& path, const std::string& text,
                         const std::vector<int>& descriptors) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return {Failure::kSystem, ENAMETOOLONG, "sendmsg"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return {Failure::kSystem, errno, "socket"};
  const socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  std::string content = text;
  iovec data = {content.data(), content.size()};
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = size;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  const size_t bytes = descriptors.size() * sizeof(int);
  std::vector<char> control(descriptors.empty() ? 0 : CMSG_SPACE(bytes));
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  // A descriptor must not be lost because the reader is busy.
  const timeval patience = {2, 0};
  setsockopt(fd.Get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const int flags = MSG_NOSIGNAL | (descriptors.empty() ? MSG_DONTWAIT : 0);
  const auto sent = RetryOnEintr([&] { return sendmsg(fd.Get(), &message, flags); });
  if (sent < 0) return {Failure::kSystem, errno, "sendmsg"};
  return {};
}

}  // namespace exitwatch
