#ifndef EXITWATCH_LINUX_SYSTEM_SOCKET_PEER_H_
#define EXITWATCH_LINUX_SYSTEM_SOCKET_PEER_H_

#include <cstdint>

namespace exitwatch {

struct SocketPeer {
  int32_t pid = 0;
  uint32_t uid = 0;    // when it connected or began to listen; that of nobody if it has none here
  uint64_t inode = 0;  // in pidfs; 0 before Linux 6.9, or if the process has exited
};

// The process that listens at the other end of a unix socket, or has connected. It may have exited
// since. False if there is none, or it has no pid here.
bool LookAtPeer(int fd, SocketPeer* peer);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_SOCKET_PEER_H_
