#ifndef EXITWATCH_CORE_GROUPS_PROCESS_WITNESS_H_
#define EXITWATCH_CORE_GROUPS_PROCESS_WITNESS_H_

#include <cstdint>
#include <optional>

#include "abi/reader.h"
#include "core/parse/proc_stat.h"

namespace exitwatch {

// Answers questions about a process by asking the kernel now, to complement its events. The
// aggregator depends on this interface alone; native/linux implements it with pidfds and /proc.
class ProcessWitness {
 public:
  // A handle always refers to the process that had the pid when it was opened. If the kernel gives
  // out no pidfd, the start time distinguishes that process from later ones.
  using Handle = int;
  static constexpr Handle kNoHandle = -1;

  virtual ~ProcessWitness() = default;

  // Opens a handle if the answer is kDead or kAlive.
  virtual ProcessState Open(int32_t pid, Handle* handle) = 0;
  virtual void Close(Handle handle) = 0;  // kNoHandle is fine

  // The process's 64-bit pidfs inode (Linux 6.9), unique to each process of a boot. 0 if the kernel
  // has none, or does not show it.
  virtual uint64_t Inode(Handle handle) = 0;

  // kGone: reaped.
  virtual ProcessState Look(Handle handle) = 0;

  // Requests calls of ThreadGroupAggregator::OnHandleReady() when the process has died and when it
  // has been reaped.
  virtual bool Hold(Handle handle, int32_t pid) = 0;

  // By number: afterwards the caller must compare start times, or look at a handle.
  virtual bool ReadStat(int32_t pid, ProcStat* stat) = 0;

  // The effective user id, by number too.
  virtual std::optional<uint32_t> ReadUid(int32_t pid) = 0;

  // The wait status of a process that was reaped. It may lack the core flag. If the first thread
  // was exiting by itself while another one ended the process, it is the first thread's code:
  // pidfs_exit() (fs/pidfs.c) takes that code, and release_task() (kernel/exit.c) gives the first
  // thread the process's only if it is already a zombie. Seen on Linux 6.18.
  virtual std::optional<int32_t> ReadExitStatus(Handle handle) = 0;

  // Whether a 0 in ProcStat::exit_code of this process means 0, not "permission denied".
  virtual bool MayReadExitCode(int32_t pid) = 0;

  // Whether ProcStat::exit_code is the wait status once all threads of the process have exited.
  // Before Linux 5.17 it is the first thread's code (fs/proc/array.c, do_task_stat()). That is
  // another code if this thread exited before the others, and lacks the core bit if another thread
  // dumped core.
  virtual bool StatTellsStatus() = 0;

  // CLOCK_MONOTONIC of the host, in nanoseconds.
  virtual uint64_t Now() = 0;

  // The clock tick since boot that contains an event's timestamp, for comparison with start times.
  virtual uint64_t TickOf(uint64_t timestamp_ns) = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_PROCESS_WITNESS_H_
