// drops PID: prints how many exits the kernel has dropped from that process's streams, by its own
// counts: those of its connector sockets, and of the records of its eBPF filters.
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <stdint.h>

#include "of_process.h"

static uint64_t drops;

static void add_socket(int fd) {
  if (!is_connector(fd)) return;
  uint32_t words[9] = {0};
  socklen_t size = sizeof(words);
  if (getsockopt(fd, SOL_SOCKET, 55, words, &size) != 0) return;
  drops += words[8];  // SO_MEMINFO, SK_MEMINFO_DROPS
}

static void add_map(int fd) {
  struct bpf_map_info info = {0};
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.info.bpf_fd = (uint32_t)fd;
  attributes.info.info_len = sizeof(info);
  attributes.info.info = (uintptr_t)&info;
  if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attributes, sizeof(attributes)) != 0) return;
  if (strcmp(info.name, "exitwatch_state") != 0) return;
  uint64_t value[9] = {0};
  uint32_t key = 0;
  memset(&attributes, 0, sizeof(attributes));
  attributes.map_fd = (uint32_t)fd;
  attributes.key = (uintptr_t)&key;
  attributes.value = (uintptr_t)value;
  if (info.value_size != sizeof(value)) exit(3);
  if (syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attributes, sizeof(attributes)) != 0) exit(3);
  drops += value[8];
}

int main(int argc, char** argv) {
  const pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
  if (!for_each_descriptor(pid, "socket:", add_socket)) return 2;
  if (!for_each_descriptor(pid, "anon_inode:bpf-map", add_map)) return 2;
  printf("%lu\n", (unsigned long)drops);
  return 0;
}
