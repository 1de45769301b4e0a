// Compiled into a keeper before everything else: epoll has no room for its descriptors, as under
// /proc/sys/fs/epoll/max_user_watches. Whether that is so is what the file of this name says.
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

static inline int FewWatches(int epoll, int operation, int fd, struct epoll_event* event) {
  if (operation == EPOLL_CTL_ADD && access("few-watches", F_OK) == 0) {
    errno = ENOSPC;
    return -1;
  }
  return epoll_ctl(epoll, operation, fd, event);
}

#define epoll_ctl FewWatches
