#include "linux/reader/recheck.h"

#include <utility>

#include "linux/system/proc_files.h"

namespace exitwatch {

Rechecked Recheck(const GroupIdentity& identity, uint64_t alive_ns, ProcessWitness& witness,
                  ThreadGroupAggregator& aggregator) {
  Rechecked result = Rechecked::kAlive;
  ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
  const ProcessState state = witness.Open(identity.pid, &handle);
  ProcStat stat;
  const bool has_stat = handle != ProcessWitness::kNoHandle &&
                        witness.ReadStat(identity.pid, &stat) &&
                        witness.Look(handle) != ProcessState::kGone;
  const uint64_t inode = handle == ProcessWitness::kNoHandle ? 0 : witness.Inode(handle);
  // Only what was observed counts: gone, or another process by its inode or its start.
  const bool is_other =
      !IsSameGroup({identity.pid, has_stat ? stat.start_ticks : 0, inode, 0, 0}, identity);
  if (state == ProcessState::kGone || is_other) {
    result = Rechecked::kEnded;
    aggregator.Presume(identity, alive_ns);
  } else if (state == ProcessState::kDead || (!has_stat && inode != 0) ||
             (has_stat && (stat.IsZombie() || HasDeadThread(identity.pid, stat)))) {
    // Dead, without its first thread, or hidden: its handle has the rest.
    if (state == ProcessState::kDead) result = Rechecked::kEnded;
    aggregator.Adopt(identity, std::exchange(handle, ProcessWitness::kNoHandle), alive_ns,
                     ThreadGroup::Cause::kLost);
  } else if (!has_stat) {
    result = Rechecked::kUnknown;
  }
  witness.Close(handle);
  return result;
}

}  // namespace exitwatch
