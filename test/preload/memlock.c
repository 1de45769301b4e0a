// For LD_PRELOAD: makes bpf(2) behave as before Linux 5.11, when maps and programs counted against
// RLIMIT_MEMLOCK. Below $MEMLOCK_NEEDED bytes nothing can be created.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>

long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_bpf && (a[0] == BPF_MAP_CREATE || a[0] == BPF_PROG_LOAD)) {
    struct rlimit limit;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur < strtoull(getenv("MEMLOCK_NEEDED"), NULL, 10)) {
      errno = EPERM;
      return -1;
    }
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
