#ifndef EXITWATCH_CORE_GROUPS_THREAD_GROUP_H_
#define EXITWATCH_CORE_GROUPS_THREAD_GROUP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/names.h"
#include "core/groups/group_identity.h"
#include "core/groups/process_witness.h"
#include "core/parse/proc_event.h"
#include "core/parse/proc_stat.h"

namespace exitwatch {

// In a wait status: a core was written.
constexpr int32_t kCoreFlag = 0x80;

// Whether the kernel writes a core for this signal by default; see signal(7).
bool IsCoreSignal(int32_t signal);

// What is known of one dying thread group: the codes of its threads, and what other witnesses say.
// Pure bookkeeping; ThreadGroupAggregator decides what happens next.
struct ThreadGroup {
  enum class Stage {
    kCollecting,  // some thread has ended; nothing is known about the first one
    kLeaderGone,  // the first thread has ended; whether the group has is not confirmed yet
    kHeld,        // the first thread has ended, others live: a handle waits for the last of them
    kDead,        // confirmed dead; late events may still tell the status
  };

  // Why it is looked at.
  enum class Cause {
    kStream,   // an event told of it
    kFound,    // it was found when the monitor began
    kWatched,  // it was dying when somebody began to watch it: the stream tells its end, too
    kLost,     // its exit may be among events that were lost
    kPidfd,    // its pidfd told its death before the stream did
  };

  // What the stream has yet to tell of a process whose handle has told its death.
  enum class Outstanding {
    kNothing,  // or nobody knows
    kEvent,    // the exit event of its first thread, which may be all that tells the status
    kRecord,   // the eBPF filter's record, which has the status and the core bit
    kLost,     // either may be among what was lost
  };

  explicit ThreadGroup(int32_t group_pid) : pid(group_pid) {}

  void AddLeaderExit(const ProcEvent& event);
  void AddThreadExit(const ProcEvent& event);
  void AddCoredump(const ProcEvent& event);

  GroupIdentity Identity() const;

  // The events that were seen were of the program before an exec.
  void ForgetEvents();

  // What /proc says of the dead group: its status, or what its first thread ended with.
  void NoteZombieCode(int32_t code, bool is_status);

  // What /proc says the group is ending with, while it still lives: that of a thread that has
  // ended, if that one has ended the group; 0 if nobody has.
  void NoteEndingCode(int32_t code);

  // What its handle says, once it was reaped.
  void NoteHandleStatus(std::optional<int32_t> status);

  // What was read of a zombie was another process's: it has told its own end.
  void ForgetStat();

  // The wait status as far as events and witnesses tell; nothing where nobody knows.
  std::optional<int32_t> Status() const;

  // Whether the events that were seen agree on how a group of several threads ended. If they do
  // not, or only the first thread's was seen, another's may be on its way.
  bool IsConclusive() const;

  // Whether threads have ended one by one with codes of their own. The status is one thread's then:
  // since Linux 6.0 the last one's (kernel/exit.c, synchronize_group_exit()), before that the first
  // one's (wait_task_zombie()), and in both the last one's if it has ended the group. The stamps of
  // events do not tell which one was the last: a thread may be preempted after its end, and before
  // its event.
  bool IsContradictory() const;

  // Whether its handle may tell what its first thread ended with in place of the status (see
  // ProcessWitness::ReadExitStatus()), and another thread has told another code. That one may have
  // ended the group, or itself.
  bool IsDisputed() const;

  // Whether a thread that has ended with a code may have ended itself alone: the first one has
  // ended soon after it.
  bool MayBeItsOwn() const;

  // Whether it may live, and its threads' codes are yet to be told from its status.
  bool IsBeingCollected() const { return stage == Stage::kCollecting || stage == Stage::kHeld; }

  // Whether the handle tells nothing that the first thread alone could not have ended with, so that
  // another's code may be on its way.
  bool MayBeFirsts() const;

  // The code of the latest event: 0 where the thread that ended last may not have been seen.
  int32_t LastCode() const {
    return events.thread_ns > events.leader_ns ? events.thread_code : events.leader_code;
  }

  // Nothing where no witness can know whether a core was written.
  std::optional<bool> CoreDumped() const;

  // Whether the first thread's exit event, which is on its way, would add to what is known.
  bool NeedsEvent() const {
    if (outstanding != Outstanding::kEvent || events.leader_known) return false;
    return answers.group_status ? !CoreDumped() || IsDisputed() : !(Status() && IsConclusive());
  }

  // Whether a record that is on its way would add to what is known.
  bool NeedsRecord() const {
    return outstanding == Outstanding::kRecord && !(Status() && CoreDumped());
  }

  // Settles when it has ended, by all that is known.
  void DateEnd();

  // What the events of its threads said.
  struct Events {
    bool leader_known = false;  // the leader's own exit event was seen
    bool released = false;      // and said that the group was gone already
    int32_t leader_code = 0;
    uint64_t leader_ns = 0;
    int32_t thread_code = 0;  // of the latest other thread that ended with a code other than 0
    uint64_t thread_ns = 0;
    bool has_several_codes = false;  // other threads ended with different ones
    uint64_t last_event_ns = 0;

    bool core_flag = false;        // some thread's code had the core bit
    bool core_announced = false;   // some thread announced a dump
    std::vector<int32_t> dumpers;  // threads that announced a dump and have not ended yet
  };

  // What /proc and its handle said when they were asked.
  struct Answers {
    // What its first thread ended with, where that need not be the group's status.
    std::optional<int32_t> first_code;
    std::optional<int32_t> ending_status;  // what the group was ending with while it could be asked
    std::optional<int32_t> group_status;   // the group's, from /proc or a reaped process's handle
    bool is_of_handle = false;             // group_status is: see IsDisputed()
    bool group_status_has_core = false;    // whether its core bit can be relied upon
    bool has_stat = false;                 // stat was read of this very process
    // Or of a later one: it had the pid, and began in the clock tick in which this one ended.
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

  // What GroupAgenda keeps of it.
  struct Agenda {
    bool is_unvalidated = false;  // whether it lives, and what it ends with, is to be asked
    bool orphan = false;          // stage kCollecting, and the process is gone
    bool is_awaited = false;      // stage kDead: nothing but a late event is of interest
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

  bool seen_alive = false;    // with a first thread, after the exit of one: an exec is under way
  bool was_held = false;      // it lived when its handle was taken over
  bool leader_first = false;  // other threads were seen to live after it
  // Whether every code other than 0 that another thread has left since then was told by its event.
  bool has_all_codes = false;

  int32_t parent_pid = 0;
  uint64_t start_ticks = 0;  // as it was known before; see stat
  uint64_t start_ns = 0;     // on the host's CLOCK_BOOTTIME; 0 where only stat tells it, in ticks
  // The pidfs inode that it must have, by what was known of it before; 0 where nothing was.
  uint64_t expected_inode = 0;
  uint64_t inode = 0;                      // of its pidfd; 0 where not known
  uint64_t cgroup = 0;                     // its id in the v2 hierarchy; 0 where not known
  char executable[kExecutableBytes] = {};  // the file name; empty where not known
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_THREAD_GROUP_H_
