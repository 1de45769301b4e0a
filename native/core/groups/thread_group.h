#ifndef EXITWATCH_CORE_GROUPS_THREAD_GROUP_H_
#define EXITWATCH_CORE_GROUPS_THREAD_GROUP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/names.h"
#include "core/groups/event_owner.h"
#include "core/groups/group_identity.h"
#include "core/groups/process_usage.h"
#include "core/groups/process_witness.h"
#include "core/parse/proc_event.h"
#include "core/parse/proc_stat.h"

namespace exitwatch {

// A wait status has this bit if a core was written.
constexpr int32_t kCoreFlag = 0x80;

// Whether the kernel writes a core for this signal by default; see signal(7).
bool IsCoreSignal(int32_t signal);

// What is known about one dying thread group: the codes of its threads and the answers of other
// witnesses. Pure bookkeeping; ThreadGroupAggregator decides what happens next.
struct ThreadGroup {
  enum class Stage {
    kCollecting,  // some thread has exited; nothing is known about the first one
    kLeaderGone,  // the first thread has exited; whether the group has is unconfirmed
    kHeld,        // the first thread has exited, others are alive: a handle waits for the last
    kDead,        // confirmed dead; late events may still change the status
  };

  // Why we look at the group.
  enum class Cause {
    kStream,   // an event reported it
    kFound,    // it was found when the monitor started
    kWatched,  // it was dying when its watch began: the stream will report it too
    kLost,     // its exit may be among the events that were lost
    kPidfd,    // its pidfd reported its death before the stream did
  };

  // What the stream has yet to report about a process whose handle reported its death.
  enum class Outstanding {
    kNothing,  // or unknown
    kEvent,    // the exit event of its first thread, which may alone have the status
    kRecord,   // the eBPF filter's record, which has the status and the core bit
    kLost,     // either of them may have been lost
  };

  explicit ThreadGroup(int32_t group_pid) : pid(group_pid) {}

  // Notes which process the group must be.
  void Expect(const EventOwner& owner);

  // Its events are those of another process than expected.
  void Become(const GroupIdentity& identity);

  void AddLeaderExit(const ProcEvent& event);
  void AddThreadExit(const ProcEvent& event);
  void AddCoredump(const ProcEvent& event);

  GroupIdentity Identity() const;

  // Whether Identity() says more than the pid.
  bool HasIdentity() const {
    const GroupIdentity identity = Identity();
    return identity.start_ticks != 0 || identity.inode != 0;
  }

  // The events so far belong to the program before an exec.
  void ForgetEvents();

  // Notes the code that /proc shows for the dead group: its status, or its first thread's code.
  void NoteZombieCode(int32_t code, bool is_status);

  // Notes the code that /proc shows while the group is alive: that of an exited thread if it ended
  // the group, 0 if no thread has.
  void NoteEndingCode(int32_t code);

  // Notes the status that the handle returns after the process was reaped.
  void NoteHandleStatus(std::optional<int32_t> status);

  // The stat that was read belongs to another process, which has reported its own exit.
  void ForgetStat();

  // The wait status that events and witnesses agree on; nothing if unknown.
  std::optional<int32_t> Status() const;

  // Whether the events so far agree on how a group of several threads exited. If they do not, or
  // only the first thread's was seen, another one may be on its way.
  bool IsConclusive() const;

  // Whether threads exited one by one with codes of their own. The status is then one thread's
  // code: the last thread's since Linux 6.0 (kernel/exit.c, synchronize_group_exit()), the first
  // thread's before (wait_task_zombie()), and in both cases the last thread's if it ended the
  // group. Timestamps do not show which thread was the last: a thread may be preempted after its
  // exit and before its event.
  bool IsContradictory() const;

  // Whether the handle may have returned the first thread's code instead of the status (see
  // ProcessWitness::ReadExitStatus()), and another thread reported a different code. That thread
  // may have ended the group, or only itself.
  bool IsDisputed() const;

  // Whether a thread that exited with a code may have ended only itself: the first thread exited
  // soon after it.
  bool MayBeItsOwn() const;

  // Whether the group may be alive, so that its threads' codes cannot be told from its status yet.
  bool IsBeingCollected() const { return stage == Stage::kCollecting || stage == Stage::kHeld; }

  // Whether the handle's status could be the first thread's own code, so that another thread's code
  // may be on its way.
  bool MayBeFirsts() const;

  // The code of the latest event. 0 if the thread that exited last may not have been seen.
  int32_t LastCode() const {
    return events.thread_ns > events.leader_ns ? events.thread_code : events.leader_code;
  }

  // Nothing if no witness can know whether a core was written.
  std::optional<bool> CoreDumped() const;

  // Whether the first thread's exit event, which is on its way, would add information.
  bool NeedsEvent() const {
    if (outstanding != Outstanding::kEvent || events.leader_known) return false;
    return answers.group_status ? !CoreDumped() || IsDisputed() : !(Status() && IsConclusive());
  }

  // Whether a record that is on its way would add information. It always has the group's status,
  // which the handle's is only if that is a signal: see ProcessWitness::ReadExitStatus().
  bool NeedsRecord() const;

  // Determines the time of the exit from all that is known.
  void DateEnd();

  // What the events of its threads reported.
  struct Events {
    bool leader_known = false;  // the leader's own exit event was seen
    bool released = false;      // and said that the group was already gone
    int32_t leader_code = 0;
    uint64_t leader_ns = 0;
    int32_t thread_code = 0;  // of the latest other thread that exited with a code other than 0
    uint64_t thread_ns = 0;
    bool has_several_codes = false;  // other threads exited with different codes
    uint64_t last_event_ns = 0;

    bool core_flag = false;        // some thread's code had the core bit
    bool core_announced = false;   // some thread announced a dump
    std::vector<int32_t> dumpers;  // threads that announced a dump and have not exited yet
  };

  // What /proc and the handle returned.
  struct Answers {
    // The first thread's code, if it need not be the group's status.
    std::optional<int32_t> first_code;
    std::optional<int32_t> ending_status;  // what it was exiting with when last asked
    std::optional<int32_t> group_status;   // the group's, from /proc or a reaped process's handle
    bool is_of_handle = false;             // group_status comes from the handle: see IsDisputed()
    bool group_status_has_core = false;    // whether its core bit is reliable
    bool has_stat = false;                 // stat was read from this very process
    // Or from a later one that had the pid and started in the clock tick in which this one exited.
    bool has_doubtful_stat = false;
    ProcStat stat;
    std::optional<uint32_t> uid;
  };

  // On the host's CLOCK_MONOTONIC.
  struct Times {
    uint64_t alive_ns = 0;      // when it was last seen alive
    uint64_t confirmed_ns = 0;  // when it was found dead
    uint64_t settle_ns = 0;     // when to stop waiting for late events
    uint64_t ended_ns = 0;
    bool ended_by_kernel = false;  // ended_ns is an event's timestamp
    uint64_t uncertainty_ns = 0;
  };

  // What GroupAgenda keeps about the group.
  struct Agenda {
    bool is_unvalidated = false;  // ask whether it is alive, and what it is exiting with
    bool orphan = false;          // stage kCollecting, and the process is gone
    bool is_awaited = false;      // stage kDead: only a late event matters
  };

  int32_t pid;
  Stage stage = Stage::kCollecting;
  Cause cause = Cause::kStream;
  Outstanding outstanding = Outstanding::kNothing;
  ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
  Events events;
  Answers answers;
  Times times;
  Agenda agenda;

  EventOwner::Certainty certainty = EventOwner::Certainty::kUnknown;
  GroupIdentity later;    // see EventOwner
  bool may_exec = false;  // it, or a later process with its pid, called exec after its exit event

  bool seen_alive = false;    // alive with a first thread after one's exit: exec in progress
  bool was_held = false;      // it was alive when its handle was taken over
  bool leader_first = false;  // other threads were seen alive after its exit
  // Whether events reported every code other than 0 with which another thread has exited since.
  bool has_all_codes = false;

  int32_t parent_pid = 0;
  uint64_t start_ticks = 0;  // as known before; see stat
  uint64_t start_ns = 0;     // on the host's CLOCK_BOOTTIME; 0 if only stat has it, in ticks
  // The pidfs inode that the process must have, from what was known before; 0 if unknown.
  uint64_t expected_inode = 0;
  uint64_t inode = 0;                      // of its pidfd; 0 if unknown
  uint64_t cgroup = 0;                     // its id in the v2 hierarchy; 0 if unknown
  char executable[kExecutableBytes] = {};  // the file name; empty if unknown
  uint64_t command_line = 0;               // its number in CommandLines; 0: unknown
  char parent_name[kNameBytes] = {};       // empty if unknown
  std::optional<ProcessUsage> usage;
  bool has_io = false;  // and the bytes in it
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_THREAD_GROUP_H_
