#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "keeper.h"

static int64_t NowMs(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t WallMs(void) { return NowMs(CLOCK_REALTIME); }

int64_t BootMs(void) { return NowMs(CLOCK_BOOTTIME); }

const char* BootId(void) {
  static char id[37];
  if (id[0] != '\0') return id;
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0 || read(file, id, 36) != 36) Die("/proc/sys/kernel/random/boot_id");
  close(file);
  return id;
}
