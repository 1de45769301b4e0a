#include "core/groups/group_inspection.h"

#include <optional>
#include <utility>

namespace exitwatch {

namespace {

// Closes the handle unless it was released.
class OwnedHandle {
 public:
  explicit OwnedHandle(ProcessWitness& witness) : witness_(witness) {}
  OwnedHandle(const OwnedHandle&) = delete;
  OwnedHandle& operator=(const OwnedHandle&) = delete;
  ~OwnedHandle() { witness_.Close(handle_); }

  ProcessWitness::Handle* Out() { return &handle_; }
  ProcessWitness::Handle Get() const { return handle_; }
  ProcessWitness::Handle Release() { return std::exchange(handle_, ProcessWitness::kNoHandle); }

 private:
  ProcessWitness& witness_;
  ProcessWitness::Handle handle_ = ProcessWitness::kNoHandle;
};

// If the handle's process has not been reaped yet, it had the pid while its file was read.
bool ReadStatOf(ProcessWitness& witness, ProcessWitness::Handle handle, int32_t pid,
                ProcStat* stat) {
  return witness.ReadStat(pid, stat) && stat->pid == pid &&
         witness.Look(handle) != ProcessState::kGone;
}

void NoteZombie(ProcessWitness& witness, ProcessWitness::Handle handle, const ProcStat& stat,
                ThreadGroup& group) {
  group.answers.has_stat = true;
  group.answers.stat = stat;
  group.inode = witness.Inode(handle);
  const std::optional<uint32_t> uid = witness.ReadUid(group.pid);
  const bool may_read = stat.exit_code != 0 || witness.MayReadExitCode(group.pid);
  const bool same_process = witness.Look(handle) != ProcessState::kGone;
  if (same_process) group.answers.uid = uid;
  // Without a thread, the process was being released while it was read. The code is then the first
  // thread's own (fs/proc/array.c, do_task_stat(), if lock_task_sighand() fails).
  if (!stat.IsZombie() || stat.threads != 1) return;
  if (stat.exit_code == 0 && !(may_read && same_process)) return;
  group.NoteZombieCode(stat.exit_code, witness.StatTellsStatus());
}

// Whether a later process has the pid. Either it started after ours exited or, within one clock
// tick, it is a zombie with another parent.
bool IsStranger(ProcessWitness& witness, const ThreadGroup& group, const ProcStat& stat,
                ProcessState state) {
  const uint64_t end_tick = witness.TickOf(group.events.leader_ns);
  if (stat.start_ticks != end_tick) return stat.start_ticks > end_tick;
  return state == ProcessState::kDead && stat.parent_pid != group.parent_pid;
}

// Start times and timestamps of events are related by clocks that are read one after the other.
constexpr uint64_t kTickError = 1;

// Another process has the pid now. Whether it is the one that exited: it was made before the event,
// whose process still had the pid. If that is uncertain and both may have exited with this code,
// notes so in the group.
bool IsEventOfOther(ProcessWitness& witness, ThreadGroup& group, const GroupIdentity& found,
                    const ProcStat& stat) {
  if (group.events.released) return false;
  const uint64_t event_tick = witness.TickOf(group.events.leader_ns);
  if (stat.start_ticks + kTickError < event_tick) return true;
  if (group.later.pid != 0 && IsSameGroup(found, group.later)) return false;
  const bool may_be = stat.start_ticks <= event_tick + kTickError && stat.IsZombie();
  const bool has_code = stat.exit_code != 0 || witness.MayReadExitCode(group.pid);
  if (may_be && (!has_code || (stat.exit_code & ~kCoreFlag) == group.events.leader_code)) {
    group.certainty = EventOwner::Certainty::kContested;
  }
  return false;
}

}  // namespace

std::optional<GroupIdentity> HolderOf(ProcessWitness& witness, int32_t pid) {
  OwnedHandle handle(witness);
  ProcessState state = witness.Open(pid, handle.Out());
  if (state == ProcessState::kGone) return GroupIdentity{};
  if (handle.Get() == ProcessWitness::kNoHandle) return {};
  ProcStat stat;
  const bool has_stat = witness.ReadStat(pid, &stat);
  const uint64_t inode = witness.Inode(handle.Get());
  state = witness.Look(handle.Get());
  if (state == ProcessState::kGone) return GroupIdentity{};
  if (!has_stat && inode == 0) return {};
  return GroupIdentity{pid, has_stat ? stat.start_ticks : 0, inode};
}

GroupState InspectGroup(ProcessWitness& witness, ThreadGroup& group) {
  OwnedHandle handle(witness);
  ProcessState state = witness.Open(group.pid, handle.Out());
  if (state == ProcessState::kUnknown) return GroupState::kUnknown;
  if (state == ProcessState::kGone) return GroupState::kDead;

  const uint64_t inode = witness.Inode(handle.Get());
  ProcStat stat;
  bool has_stat = ReadStatOf(witness, handle.Get(), group.pid, &stat);
  const GroupIdentity found = {group.pid, has_stat ? stat.start_ticks : 0, inode};
  if (!IsSameGroup(found, group.Identity())) {
    if (!has_stat || !IsEventOfOther(witness, group, found, stat)) return GroupState::kDead;
    group.Become(found);
  }
  const bool knows_inode = inode != 0 && group.expected_inode != 0;
  if (has_stat && state == ProcessState::kAlive) {
    // It may have died since the first look: do not decide on stale data.
    state = witness.Look(handle.Get());
    if (state == ProcessState::kDead)
      has_stat = ReadStatOf(witness, handle.Get(), group.pid, &stat);
  }
  if (has_stat && IsStranger(witness, group, stat, state)) return GroupState::kDead;
  if (state != ProcessState::kAlive) {
    if (!has_stat) return GroupState::kDead;
    NoteZombie(witness, handle.Get(), stat, group);
    group.answers.has_doubtful_stat =
        !knows_inode && stat.start_ticks == witness.TickOf(group.events.leader_ns);
    return GroupState::kDead;
  }
  // If /proc hides the process (hidepid), only the handle can report its exit.
  if (!has_stat && witness.Look(handle.Get()) != ProcessState::kAlive) return GroupState::kDead;
  if (!has_stat || stat.IsZombie()) {
    group.inode = inode;
    group.handle = handle.Release();
    return GroupState::kLeaderGone;
  }
  // There is a first thread again: another thread called exec, which makes the first one exit with
  // 0. A new process that got the pid within the same clock tick looks the same.
  const bool is_certain = knows_inode || stat.start_ticks < witness.TickOf(group.events.leader_ns);
  if (is_certain) return GroupState::kExeced;
  return group.events.leader_code == 0 ? GroupState::kExecedOrReused : GroupState::kDead;
}

bool IsGroupAlive(ProcessWitness& witness, ThreadGroup& group) {
  OwnedHandle handle(witness);
  const ProcessState state = witness.Open(group.pid, handle.Out());
  if (state == ProcessState::kUnknown) return true;
  ProcStat stat;
  if (state != ProcessState::kAlive || !ReadStatOf(witness, handle.Get(), group.pid, &stat) ||
      stat.start_ticks > witness.TickOf(group.events.last_event_ns)) {
    return false;
  }
  // The kernel shows a group's code as soon as the group begins to exit.
  const bool may_read = stat.exit_code != 0 || witness.MayReadExitCode(group.pid);
  const bool is_told = stat.threads > 0 && witness.StatTellsStatus() && may_read;
  if (is_told && witness.Look(handle.Get()) == ProcessState::kAlive)
    group.NoteEndingCode(stat.exit_code);
  return true;
}

void ReadDeadGroup(ProcessWitness& witness, ThreadGroup& group, ProcessState state) {
  ProcStat stat;
  if (state == ProcessState::kDead && ReadStatOf(witness, group.handle, group.pid, &stat)) {
    NoteZombie(witness, group.handle, stat, group);
  }
  if (!group.answers.group_status) group.NoteHandleStatus(witness.ReadExitStatus(group.handle));
}

}  // namespace exitwatch
