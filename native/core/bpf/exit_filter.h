#ifndef EXITWATCH_CORE_BPF_EXIT_FILTER_H_
#define EXITWATCH_CORE_BPF_EXIT_FILTER_H_

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace exitwatch {

// The cBPF (classic BPF) filter of the connector socket. It lets through:
//  - subscription answers, and datagrams too short to be the kernel's (user space counts them);
//  - the exit of a process's first thread, and of any thread with a code other than 0: a group's
//    status may be known to a non-leader thread only;
//  - execs: one by another thread ends the first one, but not the process;
//  - announcements of core dumps, which say whose exit will carry the core flag;
//  - births of kernel threads, so that their exits can be left out;
//  - every thread exit of `own_tgid`, by which the reader proves that events arrive.
std::vector<sock_filter> BuildExitFilter(uint32_t own_tgid);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_EXIT_FILTER_H_
