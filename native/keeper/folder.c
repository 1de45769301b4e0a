// One idea: the way to a file whose folders may belong to others. Who owns one of them can put a
// link in its place at any moment, to have us write elsewhere: links of root and of our own user
// are followed, and those of another user only to a folder of the same one, who can write there
// anyway. What is done in a folder is done through its descriptor.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper.h"

enum { kMostLinks = 40 };

// Takes the first name off a path. 0 or an errno; the name is empty if there is none.
static int TakeName(char* path, char name[NAME_MAX + 1]) {
  const char* const begin = path + strspn(path, "/");
  const size_t length = strcspn(begin, "/");
  if (length > NAME_MAX) return ENAMETOOLONG;
  memcpy(name, begin, length);
  name[length] = '\0';
  memmove(path, begin + length, strlen(begin + length) + 1);
  return 0;
}

enum { kNobody = -1 };  // no link of a stranger was followed

// Puts what a link says before the rest of the path. 0 or an errno.
static int FollowLink(int link, const struct stat* status, char path[PATH_MAX], int64_t* stranger) {
  if (status->st_uid != 0 && status->st_uid != geteuid()) {
    if (*stranger != kNobody && *stranger != status->st_uid) return ELOOP;
    *stranger = status->st_uid;
  }
  char target[PATH_MAX], rest[PATH_MAX];
  const ssize_t size = readlinkat(link, "", target, sizeof target - 1);
  if (size < 0) return errno;
  target[size] = '\0';
  memcpy(rest, path, strlen(path) + 1);
  return snprintf(path, PATH_MAX, "%s%s", target, rest) < PATH_MAX ? 0 : ENAMETOOLONG;
}

// Goes on to what has this name in a folder: it is one, or a link to where the path goes on. 0 or
// an errno.
static int Enter(int* folder, const char* name, char path[PATH_MAX], int* links,
                 int64_t* stranger) {
  // O_DIRECTORY has it mounted that is mounted on demand.
  int next = openat(*folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (next < 0) {
    if (errno != ENOTDIR && errno != ELOOP) return errno;
    int link = openat(*folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    int error = link < 0 || fstat(link, &status) < 0 ? errno : 0;
    if (error == 0 && !S_ISLNK(status.st_mode)) error = ENOTDIR;
    if (error == 0)
      error = ++*links > kMostLinks ? ELOOP : FollowLink(link, &status, path, stranger);
    CloseFd(&link);
    if (error != 0 || path[0] != '/') return error;
    next = open("/", O_PATH | O_CLOEXEC);
    if (next < 0) return errno;
  }
  CloseFd(folder);
  *folder = next;
  return 0;
}

int OpenFolderOf(const char* path, const char** name) {
  *name = strrchr(path, '/') + 1;
  char left[PATH_MAX], first[NAME_MAX + 1];
  int folder = open("/", O_PATH | O_CLOEXEC), links = 0;
  int64_t stranger = kNobody;
  struct stat status;
  int error = folder < 0 ? errno : 0;
  if (snprintf(left, sizeof left, "%.*s", (int)(*name - path), path) >= PATH_MAX)
    error = ENAMETOOLONG;
  while (error == 0 && (error = TakeName(left, first)) == 0 && first[0] != '\0')
    error = Enter(&folder, first, left, &links, &stranger);
  if (error == 0 && stranger != kNobody) {
    if (fstat(folder, &status) < 0)
      error = errno;
    else if (status.st_uid != stranger)
      error = ELOOP;
  }
  if (error == 0) return folder;
  CloseFd(&folder);
  errno = error;
  return -1;
}
