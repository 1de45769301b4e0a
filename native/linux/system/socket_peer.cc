#include "linux/system/socket_peer.h"

#include <sys/socket.h>

#include "linux/system/pidfd.h"
#include "linux/system/unique_fd.h"

#ifndef SO_PEERPIDFD  // Linux 6.5
#define SO_PEERPIDFD 77
#endif

namespace exitwatch {

bool LookAtPeer(int fd, SocketPeer* peer) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 || credentials.pid <= 0) {
    return false;
  }
  peer->pid = credentials.pid;
  peer->uid = credentials.uid;
  // The pid may have been reused by now; a pidfd has not.
  int number = -1;
  size = sizeof(number);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &number, &size) != 0) return true;
  const UniqueFd pidfd(number);
  peer->inode = PidfdInode(pidfd.Get());
  return true;
}

}  // namespace exitwatch
