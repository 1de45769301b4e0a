// The minimal program that reads exits from the proc connector: filter, poll, receive until EAGAIN,
// decode. Prints `ready`. When its stdin ends, prints as JSON how many exits it got and how late
// they were, except the first SKIPPED. Usage: floor [SKIPPED].
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4 * 1024 * 1024 };

static uint32_t late_us[MOST];
static size_t count;
static long skipped;
static size_t seen;
static uint32_t failed;  // something that a user of the events would look at

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int subscribe(void) {
  const int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
  // Exits of first threads.
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 36),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXIT), 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 52),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 56),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const struct sock_fprog program = {8, filter};
  const int bytes = 4 * 1024 * 1024;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
  struct {
    struct nlmsghdr netlink;
    struct cn_msg connector;
    uint32_t op;
  } __attribute__((packed)) listen = {0};
  listen.netlink.nlmsg_len = sizeof(listen);
  listen.netlink.nlmsg_type = NLMSG_DONE;
  listen.connector.id.idx = CN_IDX_PROC;
  listen.connector.id.val = CN_VAL_PROC;
  listen.connector.len = sizeof(listen.op);
  listen.op = PROC_CN_MCAST_LISTEN;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0 ||
      bind(fd, (struct sockaddr*)&address, sizeof(address)) != 0 ||
      send(fd, &listen, sizeof(listen), 0) < 0) {
    perror("floor");
    exit(1);
  }
  return fd;
}

static void receive(int fd) {
  uint8_t datagram[512];
  while (recv(fd, datagram, sizeof(datagram), 0) >= 76) {
    uint64_t exited_ns;
    uint32_t code;
    memcpy(&exited_ns, datagram + 44, sizeof(exited_ns));
    memcpy(&code, datagram + 60, sizeof(code));
    failed += code != 0;
    seen++;
    if (skipped > 0) {
      skipped--;
      continue;
    }
    if (count < MOST) late_us[count++] = (uint32_t)((now_ns() - exited_ns) / 1000);
  }
}

static int compare(const void* a, const void* b) {
  const uint32_t x = *(const uint32_t*)a;
  const uint32_t y = *(const uint32_t*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  skipped = argc > 1 ? atol(argv[1]) : 0;
  const int fd = subscribe();
  puts("ready");
  fflush(stdout);
  struct pollfd waiting[] = {{fd, POLLIN, 0}, {0, POLLIN, 0}};
  for (;;) {
    poll(waiting, 2, -1);
    if (waiting[0].revents != 0) receive(fd);
    if (waiting[1].revents != 0) break;
  }
  qsort(late_us, count, sizeof(late_us[0]), compare);
  const uint32_t p50 = count > 0 ? late_us[count / 2] : 0;
  const uint32_t p99 = count > 0 ? late_us[count * 99 / 100] : 0;
  printf("{\"seen\":%zu,\"failed\":%u,\"p50Us\":%u,\"p99Us\":%u}\n", seen, failed, p50, p99);
  return 0;
}
