#ifndef EXITWATCH_LINUX_READER_KNOWN_PROCESSES_H_
#define EXITWATCH_LINUX_READER_KNOWN_PROCESSES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "core/groups/group_identity.h"
#include "core/groups/process_entry.h"
#include "core/groups/process_witness.h"
#include "core/parse/proc_event.h"

namespace exitwatch {

// What was read of processes while they could be read: of all at one time, and of kernel threads as
// they are born, so that their ends can be left out.
class KnownProcesses {
 public:
  // Takes over the handle of a process of which a thread has ended already that its end may have to
  // wait for: the stream may not tell it.
  using OnHalfDead =
      std::function<void(const GroupIdentity& identity, ProcessWitness::Handle handle)>;

  // A process that was known, and was not found any more; its end was not told.
  using OnVanished = std::function<void(const GroupIdentity& identity, uint64_t read_ns)>;

  // Reads all processes anew, unless `stop` becomes true. `read_ns` is when they were read before.
  void ReadAll(ProcessWitness& witness, const std::atomic<bool>& stop,
               const OnHalfDead& on_half_dead, const OnVanished& on_vanished);

  // A child of kthreadd was born.
  void OnFork(const ProcEvent& event);

  // The pidfs inode of the process that had this pid at this tick; 0 where that is not known.
  uint64_t InodeAt(int32_t pid, uint64_t tick) const;

  // A process that is not known, and ended after ReadAll() was done, began after this; 0 where
  // ReadAll() did not see all.
  uint64_t UnknownSince(uint64_t ended_ns) const;

  // Forgets, and gives, what is known of the process that ended at `end_tick`.
  std::optional<ProcessEntry> Take(int32_t pid, uint64_t end_tick);

 private:
  std::unordered_map<int32_t, ProcessEntry> table_;
  bool is_complete_ = false;
  uint64_t begin_ns_ = 0;  // of the last ReadAll()
  uint64_t end_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_KNOWN_PROCESSES_H_
