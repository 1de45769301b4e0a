// bpf-objects PREFIX: prints the ids of all BPF programs, maps and links of this machine, one per
// line: `program ID NAME`, `map ID NAME`, `link ID -`. Prints only programs and maps whose names
// begin with PREFIX, and only links of such programs.
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long bpf(int command, union bpf_attr* attributes) {
  return syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

// The next id, or 0.
static uint32_t next(int command, uint32_t id) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.start_id = id;
  return bpf(command, &attributes) == 0 ? attributes.next_id : 0;
}

static int open_id(int command, uint32_t id) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.prog_id = id;
  return (int)bpf(command, &attributes);
}

static int describe(int fd, void* info, uint32_t size) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof(attributes));
  memset(info, 0, size);
  attributes.info.bpf_fd = (uint32_t)fd;
  attributes.info.info_len = size;
  attributes.info.info = (uint64_t)(uintptr_t)info;
  return (int)bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes);
}

static int is_ours(const char* name, const char* prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const char* prefix = arguments[1];
  uint32_t programs[4096];
  size_t known = 0;
  for (uint32_t id = 0; (id = next(BPF_PROG_GET_NEXT_ID, id)) != 0;) {
    int fd = open_id(BPF_PROG_GET_FD_BY_ID, id);
    struct bpf_prog_info info;
    if (fd >= 0 && describe(fd, &info, sizeof(info)) == 0 && is_ours(info.name, prefix)) {
      printf("program %u %s\n", id, info.name);
      if (known < 4096) programs[known++] = id;
    }
    if (fd >= 0) close(fd);
  }
  for (uint32_t id = 0; (id = next(BPF_MAP_GET_NEXT_ID, id)) != 0;) {
    int fd = open_id(BPF_MAP_GET_FD_BY_ID, id);
    struct bpf_map_info info;
    if (fd >= 0 && describe(fd, &info, sizeof(info)) == 0 && is_ours(info.name, prefix)) {
      printf("map %u %s\n", id, info.name);
    }
    if (fd >= 0) close(fd);
  }
  for (uint32_t id = 0; (id = next(BPF_LINK_GET_NEXT_ID, id)) != 0;) {
    int fd = open_id(BPF_LINK_GET_FD_BY_ID, id);
    struct bpf_link_info info;
    if (fd >= 0 && describe(fd, &info, sizeof(info)) == 0) {
      for (size_t i = 0; i < known; i++) {
        if (programs[i] == info.prog_id) printf("link %u -\n", id);
      }
    }
    if (fd >= 0) close(fd);
  }
  return 0;
}
