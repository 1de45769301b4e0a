#ifndef EXITWATCH_LINUX_READER_LINUX_WITNESS_H_
#define EXITWATCH_LINUX_READER_LINUX_WITNESS_H_

#include "core/groups/process_witness.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/numbered_processes.h"
#include "linux/system/pidfd_set.h"

namespace exitwatch {

// Answers from pidfds and /proc. Held handles go into a set. While pidfd_open(2) is forbidden, a
// pid and its start time serve as a handle, which cannot be held.
class LinuxWitness : public ProcessWitness {
 public:
  LinuxWitness(PidfdSet& held, const KernelClock& clock) : held_(held), clock_(clock) {}

  ProcessState Open(int32_t pid, Handle* handle) override;
  void Close(Handle handle) override;
  uint64_t Inode(Handle handle) override;
  ProcessState Look(Handle handle) override;
  bool Hold(Handle handle, int32_t pid) override;
  bool ReadStat(int32_t pid, ProcStat* stat) override;
  std::optional<uint32_t> ReadUid(int32_t pid) override;
  std::optional<int32_t> ReadExitStatus(Handle handle) override;
  bool MayReadExitCode(int32_t pid) override;
  bool StatTellsStatus() override;
  uint64_t Now() override { return clock_.Now(); }
  uint64_t TickOf(uint64_t timestamp_ns) override { return clock_.TickOf(timestamp_ns); }

 private:
  PidfdSet& held_;
  const KernelClock& clock_;
  NumberedProcesses numbered_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_LINUX_WITNESS_H_
