// slow-listener CODE COUNT: listens to the proc connector with COUNT sockets, whose filters take
// long for exits with CODE. The kernel asks the newest listener first: older listeners get these
// events some 10 ms late, in the meantime the process is reaped, and its pid may be given on.
// Prints a line when all listen. Ends with stdin.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_ATTACH_BPF
#define SO_ATTACH_BPF 50
#endif

enum { WHAT_AT = 36, EXIT_CODE_AT = 60, ITERATIONS = 200000 };

static struct bpf_insn insn(uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm) {
  return (struct bpf_insn){.code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm};
}

// Drops everything, after a long loop if it is such an exit.
static int load_filter(int code) {
  const struct bpf_insn program[] = {
      insn(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0),
      insn(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, WHAT_AT),
      insn(BPF_JMP32 | BPF_JNE | BPF_K, BPF_REG_0, 0, 5, (int32_t)htonl(0x80000000)),
      insn(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, EXIT_CODE_AT),
      insn(BPF_JMP32 | BPF_JNE | BPF_K, BPF_REG_0, 0, 3, (int32_t)htonl((uint32_t)code << 8)),
      insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_7, 0, 0, 0),
      insn(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_7, 0, 0, 1),
      insn(BPF_JMP | BPF_JLT | BPF_K, BPF_REG_7, 0, -2, ITERATIONS),
      insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
      insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
  };
  union bpf_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  attr.insns = (uint64_t)(uintptr_t)program;
  attr.insn_cnt = sizeof(program) / sizeof(program[0]);
  attr.license = (uint64_t)(uintptr_t)"GPL";
  return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int listen_with(int filter) {
  const int sock = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
  if (sock < 0) return -1;
  if (setsockopt(sock, SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof(filter)) != 0) return -1;
  const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
  return bind(sock, (const struct sockaddr*)&address, sizeof(address));
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int filter = load_filter(atoi(argv[1]));
  if (filter < 0) {
    perror("BPF_PROG_LOAD");
    return 2;
  }
  for (int i = 0; i < atoi(argv[2]); i++) {
    if (listen_with(filter) == 0) continue;
    perror("slow-listener");
    return 2;
  }
  puts("listening");
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
