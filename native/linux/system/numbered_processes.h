#ifndef EXITWATCH_LINUX_SYSTEM_NUMBERED_PROCESSES_H_
#define EXITWATCH_LINUX_SYSTEM_NUMBERED_PROCESSES_H_

#include <cstdint>
#include <unordered_map>

#include "core/groups/process_witness.h"
#include "core/parse/proc_stat.h"

namespace exitwatch {

// What /proc/PID/stat and kill(2) show about the process with this pid. Sets `stat` with kDead and
// kAlive. The id of a thread other than the first is not a process: kGone.
ProcessState LookAtNumber(int32_t pid, ProcStat* stat);

// Handles of processes while pidfd_open(2) is forbidden: a pid, and a start time to notice when
// another process gets the pid.
class NumberedProcesses {
 public:
  using Handle = ProcessWitness::Handle;

  // Below kNoHandle, and thus never a descriptor.
  static bool IsHandle(Handle handle) { return handle < ProcessWitness::kNoHandle; }

  // Opens a handle if the answer is kDead or kAlive.
  ProcessState Open(int32_t pid, Handle* handle);
  void Close(Handle handle) { processes_.erase(handle); }
  ProcessState Look(Handle handle) const;

 private:
  struct Process {
    int32_t pid;
    uint64_t start_ticks;
  };

  std::unordered_map<Handle, Process> processes_;
  Handle last_ = ProcessWitness::kNoHandle;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_NUMBERED_PROCESSES_H_
