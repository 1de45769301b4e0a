#ifndef EXITWATCH_CORE_PARSE_PROC_STAT_H_
#define EXITWATCH_CORE_PARSE_PROC_STAT_H_

#include <cstddef>
#include <cstdint>

#include "abi/names.h"

namespace exitwatch {

// What exitwatch reads of /proc/PID/stat; see proc_pid_stat(5).
struct ProcStat {
  int32_t pid = 0;
  char name[kNameBytes] = {};  // untrusted bytes of another process
  char state = '?';
  int32_t parent_pid = 0;
  uint32_t flags = 0;  // PF_* of the kernel's <linux/sched.h>
  int32_t threads = 0;
  uint64_t start_ticks = 0;  // since boot, in units of sysconf(_SC_CLK_TCK)
  // The group's wait status, or its first thread's: see ProcessWitness::StatTellsStatus(). 0 as
  // well where the reader is not permitted to see it.
  int32_t exit_code = 0;

  bool IsKernelThread() const { return (flags & 0x00200000u) != 0; }  // PF_KTHREAD
  bool IsZombie() const { return state == 'Z' || state == 'X'; }
  // The first thread has ended and others go on: the process lives.
  bool IsLeaderGone() const { return IsZombie() && threads > 1; }
};

bool ParseProcStat(const char* text, size_t size, ProcStat* stat);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_PARSE_PROC_STAT_H_
