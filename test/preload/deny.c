// For LD_PRELOAD: when the file $DENY_WHEN appears, installs a seccomp filter for all threads that
// makes pidfd_open(2) fail with the error $DENY_WITH (a number), and removes the file.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static void* deny(void* file) {
  while (access(file, F_OK) != 0) usleep(1000);
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(getenv("DENY_WITH"))),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {4, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long result =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (result != 0) abort();
  unlink(file);
  return NULL;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  char* file = getenv("DENY_WHEN");
  if (file != NULL) pthread_create(&thread, NULL, deny, file);
}
