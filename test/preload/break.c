// For LD_PRELOAD: replaces the connector's sockets with /dev/null, once, when the file $BREAK_WHEN
// appears.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void* break_sockets(void* file) {
  while (access(file, F_OK) != 0) usleep(10000);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 3; fd < 4096; fd++) {
    int protocol = -1;
    int domain = -1;
    socklen_t size = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_NETLINK)
      continue;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) continue;
    if (protocol == NETLINK_CONNECTOR) dup3(null, fd, O_CLOEXEC);
  }
  close(null);
  return NULL;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  char* file = getenv("BREAK_WHEN");
  if (file != NULL) pthread_create(&thread, NULL, break_sockets, file);
}
