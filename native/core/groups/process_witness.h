#ifndef EXITWATCH_CORE_GROUPS_PROCESS_WITNESS_H_
#define EXITWATCH_CORE_GROUPS_PROCESS_WITNESS_H_

#include <cstdint>
#include <optional>

#include "abi/reader.h"
#include "core/parse/proc_stat.h"

namespace exitwatch {

// What can be found out about a process by asking the kernel now, beside what its events said. The
// aggregator decides by this interface alone; native/linux answers it with pidfds and /proc.
class ProcessWitness {
 public:
  // A handle stays with the process that had the pid when it was opened, for ever: as far as its
  // start tells that from another's, where the kernel gives out none.
  using Handle = int;
  static constexpr Handle kNoHandle = -1;

  virtual ~ProcessWitness() = default;

  // Opens a handle where the answer is kDead or kAlive.
  virtual ProcessState Open(int32_t pid, Handle* handle) = 0;
  virtual void Close(Handle handle) = 0;  // kNoHandle is fine

  // The process's 64-bit inode of pidfs (Linux 6.9), by which no two processes of a boot are alike;
  // 0 where the kernel has none, or does not tell it.
  virtual uint64_t Inode(Handle handle) = 0;

  // kGone: reaped.
  virtual ProcessState Look(Handle handle) = 0;

  // Asks to be told, by ThreadGroupAggregator::OnHandleReady(), when the process has died and when
  // it has been reaped.
  virtual bool Hold(Handle handle, int32_t pid) = 0;

  // By number: the caller compares start times or looks at a handle afterwards.
  virtual bool ReadStat(int32_t pid, ProcStat* stat) = 0;

  // The effective user id; by number as well.
  virtual std::optional<uint32_t> ReadUid(int32_t pid) = 0;

  // The wait status of a process that was reaped. The core flag may be missing from it. And where
  // the first thread was ending by itself while another ended the process, it is what the first one
  // ended with: pidfs_exit() (fs/pidfs.c) takes that thread's code, and release_task()
  // (kernel/exit.c) gives it the process's only if it is a zombie already. Seen on Linux 6.18.
  virtual std::optional<int32_t> ReadExitStatus(Handle handle) = 0;

  // Whether a 0 in ProcStat::exit_code of this process means 0, and not "not permitted".
  virtual bool MayReadExitCode(int32_t pid) = 0;

  // Whether ProcStat::exit_code of a process whose threads have all ended is its wait status.
  // Before Linux 5.17 it is what its first thread ended with (fs/proc/array.c, do_task_stat()):
  // another code where that one left before the others, and without the core bit where another one
  // dumped.
  virtual bool StatTellsStatus() = 0;

  // CLOCK_MONOTONIC of the host, in nanoseconds.
  virtual uint64_t Now() = 0;

  // The clock tick since boot in which an event's timestamp lies, to compare with start times.
  virtual uint64_t TickOf(uint64_t timestamp_ns) = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_PROCESS_WITNESS_H_
