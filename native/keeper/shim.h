// What a shim, and a child before its exec, report through pipes.
#ifndef EXITWATCH_SHIM_H_
#define EXITWATCH_SHIM_H_

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Its name once these descriptors are in place.
#define kShimName "exitwatch-shim"

enum { kShimReadFd = 3, kShimWriteFd = 4 };

typedef struct {
  int error;
  char step[28];
} StartFailure;

typedef struct {
  int64_t peak_kib;
  int64_t user_us;
  int64_t system_us;
} Usage;

// `kEndedBeforeExec`: it ended, and its command was not executed.
enum { kBegun, kEndedAfterExec, kEndedBeforeExec };

typedef struct {
  int64_t ticks;
  int64_t boot_ms;
  int64_t ended_ms;
  int64_t lived_ms;
  Usage usage;
  pid_t pid;
  int status;
  int kind;
} ShimReport;

// A child's end.
typedef struct {
  Usage usage;
  pid_t pid;
  int status;  // of waitpid
} Death;

// Looks at a child that has ended, or at any (P_ALL), without reaping it: who is killed before its
// end is on disk has not taken it along. `more`: WNOHANG or 0. Returns whether there is one; if
// not, errno is 0 or tells why.
bool PeekDeath(int which, pid_t pid, int more, Death* death);
void Reap(pid_t pid);
// Closes all descriptors from this one on.
void CloseFrom(int first);
// In a file, for the next keeper; and takes it out of there: 0 or an errno.
void ShimStore(const char* id, const ShimReport* report);
int ShimTake(const char* id, ShimReport* report);
// A run may get this id again: it must not find the end of this one.
void ShimForget(const char* id);

#endif  // EXITWATCH_SHIM_H_
