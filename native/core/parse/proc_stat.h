#ifndef EXITWATCH_CORE_PARSE_PROC_STAT_H_
#define EXITWATCH_CORE_PARSE_PROC_STAT_H_

#include <cstddef>
#include <cstdint>

#include "abi/names.h"

namespace exitwatch {

// The fields of /proc/PID/stat that exitwatch uses; see proc_pid_stat(5).
struct ProcStat {
  int32_t pid = 0;
  char name[kNameBytes] = {};  // another process chose these bytes: do not trust them
  char state = '?';
  int32_t parent_pid = 0;
  uint32_t flags = 0;  // PF_* of the kernel's <linux/sched.h>
  int32_t threads = 0;
  uint64_t start_ticks = 0;  // since boot, in units of sysconf(_SC_CLK_TCK)
  // The group's wait status, or its first thread's code: see ProcessWitness::StatTellsStatus().
  // Also 0 if the reader may not see it.
  int32_t exit_code = 0;

  bool IsKernelThread() const { return (flags & 0x00200000u) != 0; }  // PF_KTHREAD
  bool IsZombie() const { return state == 'Z' || state == 'X'; }
  // The first thread has exited, but others run on: the process is alive.
  bool IsLeaderGone() const { return IsZombie() && threads > 1; }
};

bool ParseProcStat(const char* text, size_t size, ProcStat* stat);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_PARSE_PROC_STAT_H_
