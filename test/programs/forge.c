// forge PID unicast PORT | forge PID multicast: sends a well-formed exit event (status 42) for PID,
// as if it came from the kernel, and datagrams that are too short. Prints `sent` or `refused` for
// each.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void put32(uint8_t* at, uint32_t value) { memcpy(at, &value, sizeof(value)); }

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const uint32_t pid = (uint32_t)atol(argv[1]);
  uint8_t message[76] = {0};
  put32(message, sizeof(message));
  message[4] = NLMSG_DONE;
  put32(message + 16, 1);  // CN_IDX_PROC
  put32(message + 20, 1);  // CN_VAL_PROC
  message[32] = 40;
  put32(message + 36, 0x80000000u);  // PROC_EVENT_EXIT
  put32(message + 52, pid);
  put32(message + 56, pid);
  put32(message + 60, 42 << 8);
  put32(message + 64, 17);

  const int fd = socket(AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR);
  struct sockaddr_nl to = {.nl_family = AF_NETLINK};
  if (strcmp(argv[2], "unicast") == 0)
    to.nl_pid = (uint32_t)atol(argv[3]);
  else
    to.nl_groups = 1;
  const size_t sizes[] = {76, 76, 40, 20};
  for (int i = 0; i < 4; i++) {
    put32(message, (uint32_t)sizes[i]);
    const ssize_t sent = sendto(fd, message, sizes[i], 0, (struct sockaddr*)&to, sizeof(to));
    // After it has delivered to the group, the kernel refuses the sender: nothing listens at port
    // 0.
    printf("%s %s\n", sent == (ssize_t)sizes[i] ? "sent" : "refused",
           sent < 0 ? strerror(errno) : "");
  }
  return 0;
}
