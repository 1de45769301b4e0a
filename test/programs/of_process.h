// Access to the descriptors of another process.
#ifndef EXITWATCH_TEST_OF_PROCESS_H_
#define EXITWATCH_TEST_OF_PROCESS_H_

#include <dirent.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_connector(int fd) {
  int protocol = -1;
  socklen_t size = sizeof(protocol);
  if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return 0;
  struct sockaddr_nl name = {0};
  size = sizeof(name);
  if (getsockname(fd, (struct sockaddr*)&name, &size) != 0) return 0;
  return name.nl_family == AF_NETLINK && protocol == NETLINK_CONNECTOR;
}

// Calls `visit` with a copy of every descriptor of the process whose link begins with `prefix`.
static int for_each_descriptor(pid_t pid, const char* prefix, void (*visit)(int fd)) {
  const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  char path[300];
  snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
  DIR* directory = opendir(path);
  if (pidfd < 0 || directory == NULL) return 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    char link[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
    if (readlink(path, link, sizeof(link) - 1) < 0 || strncmp(link, prefix, strlen(prefix)) != 0) {
      continue;
    }
    const int fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(entry->d_name), 0);
    if (fd < 0) return 0;
    visit(fd);
    close(fd);
  }
  closedir(directory);
  close(pidfd);
  return 1;
}

#endif  // EXITWATCH_TEST_OF_PROCESS_H_
