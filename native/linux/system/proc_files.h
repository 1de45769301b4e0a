#ifndef EXITWATCH_LINUX_SYSTEM_PROC_FILES_H_
#define EXITWATCH_LINUX_SYSTEM_PROC_FILES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "core/parse/proc_stat.h"

namespace exitwatch {

// Reads /proc/PID/stat by number. False with errno set: ENOENT or ESRCH no such process, EBADMSG
// text that does not parse.
bool ReadProcStat(int32_t pid, ProcStat* stat);

// The effective user id, as ps(1) shows it, from the owner of /proc/PID.
std::optional<uint32_t> ReadProcUid(int32_t pid);

// The process that the task with this id belongs to; nothing where that cannot be read.
std::optional<int32_t> ReadProcGroup(int32_t task);

// Whether the kernel lets us see what ptrace may read of this process, which is what decides
// between a true and a blanked exit code in /proc/PID/stat; asked of a file of the same permission.
bool MayReadProcExitCode(int32_t pid);

// Whether a thread of a living process, other than its first, has ended and is still there: its
// tracer has not let go of it. The process cannot end before.
bool HasDeadThread(int32_t pid, const ProcStat& stat);

// kernel.pid_max, or the most that Linux can have where it cannot be read.
int32_t ReadPidMax();

// Calls `visit` with every process id in /proc, until it returns false. False where /proc cannot be
// read.
bool ForEachProcess(const std::function<bool(int32_t pid)>& visit);

// Whether /proc is mounted and shows this process under its own pid.
bool ProcShowsOurPids();

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_PROC_FILES_H_
