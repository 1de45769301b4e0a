// The socket of sd_notify(3), one for each run: messages of others are not its own.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "keeper.h"

enum { kMostMessageBytes = 4096, kMostAtOnce = 64 };

// An abstract address: the user of a run may not be able to open the folder.
int NotifyOpen(Run* run, char* address, size_t room) {
  uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != sizeof random) return EIO;
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  const int length =
      snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "exitwatch/%016llx%016llx",
               (unsigned long long)random[0], (unsigned long long)random[1]);
  run->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (run->notify_fd < 0 ||
      setsockopt(run->notify_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ||
      bind(run->notify_fd, (struct sockaddr*)&name,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) < 0) {
    const int error = errno;
    CloseFd(&run->notify_fd);
    return error;
  }
  snprintf(address, room, "@%s", name.sun_path + 1);
  return 0;
}

// A sender may be gone when its message is read: then its user must do.
static bool IsOurs(const Run* run, const struct ucred* sender) {
  Stat stat;
  if (sender->pid == run->pid || TreeHas(run, sender->pid)) return true;
  return ReadStat(sender->pid, &stat) == ESRCH && sender->uid == run->uid;
}

static void TakeLine(Run* run, const char* line) {
  if (strcmp(line, "READY=1") == 0) run->is_ready = true;
  if (strcmp(line, "STOPPING=1") == 0) run->is_stopping = true;
  if (strcmp(line, "READY=1") == 0 || strcmp(line, "WATCHDOG=1") == 0)
    run->alive_boot_ms = BootMs();
  if (strncmp(line, "STATUS=", 7) == 0) {
    free(run->text);
    run->text = Copy(line + 7);
  }
}

// Closes descriptors that came with a message.
static void CloseSent(struct msghdr* message, struct ucred* sender) {
  for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part != NULL;
       part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) memcpy(sender, CMSG_DATA(part), sizeof *sender);
    if (part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int fd;
      memcpy(&fd, (char*)part + at, sizeof fd);
      close(fd);
    }
  }
}

void NotifyRead(Run* run) {
  for (int i = 0; i < kMostAtOnce; i++) {
    char text[kMostMessageBytes + 1];
    union {
      char bytes[512];
      struct cmsghdr align;
    } control;
    struct iovec piece = {text, kMostMessageBytes};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    const ssize_t size = recvmsg(run->notify_fd, &message, MSG_CMSG_CLOEXEC);
    if (size < 0) return;
    struct ucred sender = {.pid = 0};
    CloseSent(&message, &sender);
    if (sender.pid == 0 || !IsOurs(run, &sender)) continue;
    text[size] = '\0';
    if (strlen(text) != (size_t)size) continue;  // a NUL within
    char* const lines = Copy(text);
    char* rest = lines;
    for (char* line; (line = strsep(&rest, "\n")) != NULL;) TakeLine(run, line);
    free(lines);
    TellNotify(run, text);
  }
}
