#ifndef EXITWATCH_CORE_GROUPS_PROCESS_USAGE_H_
#define EXITWATCH_CORE_GROUPS_PROCESS_USAGE_H_

#include <cstdint>

namespace exitwatch {

// What all threads of a process have used, without its children, as the kernel counts it.
struct ProcessUsage {
  uint64_t user_ns;     // by samples, unless the kernel measures it
  uint64_t system_ns;   // the same
  uint64_t runtime_ns;  // of both, as the scheduler measured it
  uint64_t max_rss_pages;
  uint64_t read_bytes;  // from storage
  uint64_t written_bytes;
};

// How getrusage(2) divides the runtime: in proportion to the samples (kernel/sched/cputime.c,
// cputime_adjust()).
struct CpuTimes {
  uint64_t user_ns;
  uint64_t system_ns;
};
CpuTimes DivideRuntime(const ProcessUsage& usage);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_PROCESS_USAGE_H_
