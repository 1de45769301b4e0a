#ifndef EXITWATCH_LINUX_SYSTEM_STAT_CODE_TRIAL_H_
#define EXITWATCH_LINUX_SYSTEM_STAT_CODE_TRIAL_H_

namespace exitwatch {

// Whether the last field of a zombie's /proc/PID/stat is the wait status of its process, as it is
// since Linux 5.17 (fs/proc/array.c, commit "exit: Use the correct exit_code in /proc/<pid>/stat"),
// and not its first thread's code. Distributions backport such changes, so a child of ours tests
// it, once per process. Also false if it cannot be tested.
bool StatCodeIsStatus();

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_STAT_CODE_TRIAL_H_
