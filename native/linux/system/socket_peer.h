#ifndef EXITWATCH_LINUX_SYSTEM_SOCKET_PEER_H_
#define EXITWATCH_LINUX_SYSTEM_SOCKET_PEER_H_

#include <cstdint>

namespace exitwatch {

struct SocketPeer {
  int32_t pid = 0;
  uint64_t inode = 0;  // in pidfs; 0 before Linux 6.9, and where it has ended
};

// Who listens at the other end of a unix socket, or has connected; it may have ended since. False
// where there is nobody, or it has no pid here.
bool LookAtPeer(int fd, SocketPeer* peer);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_SOCKET_PEER_H_
