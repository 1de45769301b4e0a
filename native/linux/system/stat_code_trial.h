#ifndef EXITWATCH_LINUX_SYSTEM_STAT_CODE_TRIAL_H_
#define EXITWATCH_LINUX_SYSTEM_STAT_CODE_TRIAL_H_

namespace exitwatch {

// Whether the last field of /proc/PID/stat of a zombie is the wait status of its process, as since
// Linux 5.17 (fs/proc/array.c, commit "exit: Use the correct exit_code in /proc/<pid>/stat"), and
// not what its first thread ended with. Distributions carry such changes back: a process of our own
// tries it, once for all. False also where that cannot be tried.
bool StatCodeIsStatus();

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_STAT_CODE_TRIAL_H_
