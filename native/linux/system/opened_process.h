#ifndef EXITWATCH_LINUX_SYSTEM_OPENED_PROCESS_H_
#define EXITWATCH_LINUX_SYSTEM_OPENED_PROCESS_H_

#include <cstdint>

#include "core/parse/proc_stat.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// A process, and what identifies it. While its pidfd is open, no other process can take its place.
struct OpenedProcess {
  UniqueFd pidfd;
  ProcStat stat;
  uint64_t inode = 0;  // in pidfs; 0 before Linux 6.9

  // Opens the process that has this pid now. Fails if no process has it (see IsGone()), if pidfds
  // are missing or forbidden (kNoPidfd), or if /proc hides the process (kNoProc).
  SystemError Open(int32_t pid);
};

// Whether OpenedProcess::Open() failed because no process has the pid.
bool IsGone(const SystemError& error);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_OPENED_PROCESS_H_
