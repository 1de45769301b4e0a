// Compiled into a keeper before everything else: the kernel has no cgroup.kill, as before
// Linux 5.14.
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define open(path, ...) \
  (strstr(path, "/cgroup.kill") == NULL ? open(path, __VA_ARGS__) : (errno = ENOENT, -1))
