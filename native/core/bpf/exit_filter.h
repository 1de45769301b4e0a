#ifndef EXITWATCH_CORE_BPF_EXIT_FILTER_H_
#define EXITWATCH_CORE_BPF_EXIT_FILTER_H_

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace exitwatch {

// The cBPF (classic BPF) filter of the connector socket. It passes:
//  - subscription answers, and datagrams too short to be the kernel's (user space counts them);
//  - the exit of a process's first thread, and of any thread with a code other than 0: only another
//    thread may know the group's status;
//  - execs: an exec by another thread ends the first one, but not the process;
//  - announcements of core dumps, which say whose exit will have the core flag;
//  - forks of kernel threads, so that their exits can be left out;
//  - every thread exit of `own_tgid`, which proves to the reader that events arrive.
std::vector<sock_filter> BuildExitFilter(uint32_t own_tgid);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_EXIT_FILTER_H_
