#ifndef EXITWATCH_LINUX_SYSTEM_PROC_FILES_H_
#define EXITWATCH_LINUX_SYSTEM_PROC_FILES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "core/parse/proc_stat.h"

namespace exitwatch {

// Reads /proc/PID/stat by number. False with errno set: ENOENT or ESRCH if there is no such
// process, EBADMSG if the text does not parse.
bool ReadProcStat(int32_t pid, ProcStat* stat);

// The effective user id, as ps(1) shows it, from the owner of /proc/PID.
std::optional<uint32_t> ReadProcUid(int32_t pid);

// The process that the task with this id belongs to; nothing if it cannot be read.
std::optional<int32_t> ReadProcGroup(int32_t task);

// Whether we may read what ptrace protects. That decides whether /proc/PID/stat shows us the real
// exit code or a blank. Tested with a file that requires the same permission.
bool MayReadProcExitCode(int32_t pid);

// Whether a thread of a live process, other than its first, has exited but still exists, because
// its debugger has not released it. The process cannot exit before that.
bool HasDeadThread(int32_t pid, const ProcStat& stat);

// kernel.pid_max, or the highest possible value if it cannot be read.
int32_t ReadPidMax();

// Calls `visit` for every process id in /proc, until it returns false. False if /proc cannot be
// read.
bool ForEachProcess(const std::function<bool(int32_t pid)>& visit);

// Whether /proc is mounted and shows this process under its own pid.
bool ProcShowsOurPids();

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_PROC_FILES_H_
