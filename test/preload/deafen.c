// For LD_PRELOAD: while the file $DEAF_WHILE exists, replaces the filter that a socket requests
// with one that passes only answers to subscriptions, or not even these if $DEAF_TO_ALL is set. The
// stream is silent from the beginning.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef int (*setsockopt_function)(int, int, int, const void*, socklen_t);

int setsockopt(int fd, int level, int option, const void* value, socklen_t size) {
  const setsockopt_function next = (setsockopt_function)dlsym(RTLD_NEXT, "setsockopt");
  const char* file = getenv("DEAF_WHILE");
  const int is_filter =
      level == SOL_SOCKET && (option == SO_ATTACH_FILTER || option == SO_ATTACH_BPF);
  if (!is_filter || file == NULL || access(file, F_OK) != 0) {
    return next(fd, level, option, value, size);
  }
  struct sock_filter answers[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 36),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const struct sock_fprog only_answers = {4, answers};
  const struct sock_fprog nothing = {1, answers + 3};
  const struct sock_fprog* program = getenv("DEAF_TO_ALL") == NULL ? &only_answers : &nothing;
  return next(fd, level, SO_ATTACH_FILTER, program, sizeof(*program));
}
