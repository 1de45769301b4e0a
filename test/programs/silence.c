// silence PID: gives the process's connector sockets a filter that lets nothing through, so that
// the kernel tells it nothing any more, without an error.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "of_process.h"

static int silenced;

static void silence(int fd) {
  int protocol = -1;
  socklen_t size = sizeof(protocol);
  if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return;
  struct sockaddr_nl name = {0};
  size = sizeof(name);
  if (getsockname(fd, (struct sockaddr*)&name, &size) != 0 || name.nl_family != AF_NETLINK) return;
  struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const struct sock_fprog program = {1, nothing};
  if (protocol != NETLINK_CONNECTOR) return;
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0) silenced++;
}

int main(int argc, char** argv) {
  const pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
  if (!for_each_descriptor(pid, "socket:", silence)) return 2;
  printf("%d\n", silenced);
  return silenced > 0 ? 0 : 1;
}
