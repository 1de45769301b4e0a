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

// What was read about processes while they could be read: about all of them at one time, and about
// kernel threads when they are forked, so that their exits can be left out.
class KnownProcesses {
 public:
  // Takes over the handle of a process of which a thread has already exited. Its exit may have to
  // wait for the handle, because the stream may not report it.
  using OnHalfDead =
      std::function<void(const GroupIdentity& identity, ProcessWitness::Handle handle)>;

  // A known process was not found any more, and its exit was not reported.
  using OnVanished = std::function<void(const GroupIdentity& identity, uint64_t read_ns)>;

  // Reads all processes again, unless `stop` becomes true. `read_ns`: when they were read before.
  void ReadAll(ProcessWitness& witness, const std::atomic<bool>& stop,
               const OnHalfDead& on_half_dead, const OnVanished& on_vanished);

  // kthreadd forked a child.
  void OnFork(const ProcEvent& event);

  // The process that had this pid at this tick, if it is known.
  std::optional<GroupIdentity> FindAt(int32_t pid, uint64_t tick) const;

  // An unknown process that exited after ReadAll() started after this time. 0 if ReadAll() did not
  // see all processes.
  uint64_t UnknownSince(uint64_t ended_ns) const;

  // Removes and returns what is known about the process that exited at `end_tick`.
  std::optional<ProcessEntry> Take(int32_t pid, uint64_t end_tick);

 private:
  std::unordered_map<int32_t, ProcessEntry> table_;
  bool is_complete_ = false;
  uint64_t begin_ns_ = 0;  // of the last ReadAll()
  uint64_t end_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_KNOWN_PROCESSES_H_
