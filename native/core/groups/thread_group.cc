#include "core/groups/thread_group.h"

#include <algorithm>

namespace exitwatch {

namespace {

constexpr int32_t kSignalMask = 0x7f;

// With this signal seccomp may end a single thread; every other signal ends the group.
constexpr int32_t kSigSys = 31;

// Whether a thread can exit with this code only together with its group.
bool EndsGroup(int32_t code) {
  const int32_t signal = code & kSignalMask;
  return signal != 0 && signal != kSigSys;
}

// If the leader exits by itself this long after a thread left a code, that code was the thread's
// own (a raw exit(2), seccomp's kill-thread), not the group's.
constexpr uint64_t kUnrelatedAfterNs = 1'000'000'000;

}  // namespace

bool IsCoreSignal(int32_t signal) {
  switch (signal) {
    case 3:   // SIGQUIT
    case 4:   // SIGILL
    case 5:   // SIGTRAP
    case 6:   // SIGABRT
    case 7:   // SIGBUS
    case 8:   // SIGFPE
    case 11:  // SIGSEGV
    case 24:  // SIGXCPU
    case 25:  // SIGXFSZ
    case 31:  // SIGSYS
      return true;
    default:
      return false;
  }
}

void ThreadGroup::Expect(const EventOwner& owner) {
  if (owner.certainty == EventOwner::Certainty::kUnknown) return;
  certainty = owner.certainty;
  later = owner.later;
  if (expected_inode == 0) expected_inode = owner.process.inode;
  if (start_ticks == 0) start_ticks = owner.process.start_ticks;
}

void ThreadGroup::Become(const GroupIdentity& identity) {
  certainty = EventOwner::Certainty::kUnknown;
  expected_inode = identity.inode;
  start_ticks = identity.start_ticks;
}

void ThreadGroup::AddLeaderExit(const ProcEvent& event) {
  events.leader_known = true;
  events.leader_code = event.exit_code & ~kCoreFlag;
  events.leader_ns = event.timestamp_ns;
  events.released = event.IsOfReleased();
  parent_pid = event.parent_tgid;
  events.last_event_ns = std::max(events.last_event_ns, event.timestamp_ns);
  events.core_flag = events.core_flag || (event.exit_code & kCoreFlag) != 0;
  events.dumpers.erase(std::remove(events.dumpers.begin(), events.dumpers.end(), event.pid),
                       events.dumpers.end());
}

void ThreadGroup::AddThreadExit(const ProcEvent& event) {
  // Events from different CPUs do not arrive in the order of their timestamps.
  const int32_t code = event.exit_code & ~kCoreFlag;
  events.has_several_codes =
      events.has_several_codes || (events.thread_code != 0 && events.thread_code != code);
  if (event.timestamp_ns >= events.thread_ns || EndsGroup(code)) {
    // A signal outweighs a later timestamp.
    if (!EndsGroup(events.thread_code)) events.thread_code = code;
    events.thread_ns = std::max(events.thread_ns, event.timestamp_ns);
  }
  events.last_event_ns = std::max(events.last_event_ns, event.timestamp_ns);
  events.core_flag = events.core_flag || (event.exit_code & kCoreFlag) != 0;
  events.dumpers.erase(std::remove(events.dumpers.begin(), events.dumpers.end(), event.pid),
                       events.dumpers.end());
}

void ThreadGroup::AddCoredump(const ProcEvent& event) {
  events.core_announced = true;
  events.dumpers.push_back(event.pid);
}

void ThreadGroup::ForgetEvents() {
  events = {};
  leader_first = false;
}

void ThreadGroup::NoteZombieCode(int32_t code, bool is_status) {
  if (is_status || EndsGroup(code)) {
    answers.group_status = code;
    answers.is_of_handle = false;
    answers.group_status_has_core = is_status;
  } else {
    answers.first_code = code;
  }
}

void ThreadGroup::NoteEndingCode(int32_t code) {
  if (code == 0) {
    events.thread_code = 0;
    events.has_several_codes = false;
  } else if ((code & ~kCoreFlag) == events.thread_code) {
    answers.ending_status = code;
  }
}

void ThreadGroup::NoteHandleStatus(std::optional<int32_t> status) {
  answers.group_status = status;
  answers.is_of_handle = status.has_value();
}

bool ThreadGroup::IsDisputed() const {
  if (!answers.group_status || !answers.is_of_handle || leader_first || events.thread_code == 0)
    return false;
  const int32_t status = *answers.group_status & ~kCoreFlag;
  if (status == events.thread_code || EndsGroup(status)) return false;
  // Undisputed if the first thread's own code was overwritten, or came long after the other
  // thread's.
  return !events.leader_known ||
         (status == events.leader_code && events.leader_ns <= events.thread_ns + kUnrelatedAfterNs);
}

bool ThreadGroup::MayBeFirsts() const {
  return answers.group_status == 0 && answers.is_of_handle && !leader_first &&
         events.thread_code == 0;
}

bool ThreadGroup::NeedsRecord() const {
  if (outstanding != Outstanding::kRecord) return false;
  const bool may_be_firsts =
      answers.group_status && answers.is_of_handle && !EndsGroup(*answers.group_status);
  return may_be_firsts || !Status() || !CoreDumped();
}

void ThreadGroup::ForgetStat() {
  answers.has_stat = answers.has_doubtful_stat = false;
  answers.group_status.reset();
  answers.is_of_handle = false;
  answers.first_code.reset();
  answers.group_status_has_core = false;
  answers.uid.reset();
  inode = 0;
}

GroupIdentity ThreadGroup::Identity() const {
  return {pid, answers.has_stat ? answers.stat.start_ticks : start_ticks,
          inode != 0 ? inode : expected_inode, 0, start_ns};
}

std::optional<int32_t> ThreadGroup::Status() const {
  int32_t status;
  if (answers.group_status && !answers.is_of_handle) {
    status = *answers.group_status & ~kCoreFlag;
  } else if (answers.ending_status) {
    status = *answers.ending_status & ~kCoreFlag;
  } else if (answers.group_status && !IsDisputed()) {
    status = *answers.group_status & ~kCoreFlag;
  } else if (answers.group_status || IsContradictory()) {
    return std::nullopt;
  } else if (certainty == EventOwner::Certainty::kContested) {
    return std::nullopt;
  } else if (events.thread_code == 0 && !events.leader_known) {
    if (answers.first_code != 0 || !has_all_codes) return std::nullopt;
    status = 0;
  } else if (events.thread_code == 0) {
    status = events.leader_code;
  } else if (events.leader_code == 0) {
    // If another thread ended the group, the leader may have exited before it with 0: the other
    // code is the group's.
    const bool unrelated =
        events.leader_known && events.leader_ns > events.thread_ns + kUnrelatedAfterNs;
    status = unrelated ? 0 : events.thread_code;
  } else if (EndsGroup(events.leader_code) || EndsGroup(events.thread_code)) {
    status = EndsGroup(events.thread_code) ? events.thread_code : events.leader_code;
  } else {
    status = events.leader_ns > events.thread_ns ? events.leader_code : events.thread_code;
  }
  if ((status & kSignalMask) != 0 && CoreDumped().value_or(false)) status |= kCoreFlag;
  return status;
}

bool ThreadGroup::IsContradictory() const {
  if (IsConclusive()) return false;
  if (leader_first) return events.leader_code != 0 || events.thread_code != 0;
  if (events.leader_code == 0) return MayBeItsOwn();
  return events.thread_code != 0 && events.leader_ns <= events.thread_ns + kUnrelatedAfterNs;
}

bool ThreadGroup::MayBeItsOwn() const {
  return events.thread_code != 0 && events.leader_known && !leader_first &&
         events.thread_ns <= events.leader_ns &&
         events.leader_ns <= events.thread_ns + kUnrelatedAfterNs;
}

bool ThreadGroup::IsConclusive() const {
  if (EndsGroup(events.leader_code) || EndsGroup(events.thread_code)) return true;
  if (events.thread_code == 0) return false;
  if (events.has_several_codes) return false;
  return events.leader_code == 0 ? !MayBeItsOwn() : events.thread_code == events.leader_code;
}

std::optional<bool> ThreadGroup::CoreDumped() const {
  if (events.core_flag) return true;
  if (answers.group_status && (*answers.group_status & kCoreFlag) != 0) return true;
  if (answers.group_status && answers.group_status_has_core) return false;
  if (answers.ending_status) return (*answers.ending_status & kCoreFlag) != 0;
  // Every dump is announced before it is written. Threads that announced one and exited without the
  // flag wrote none.
  if (events.core_announced && events.dumpers.empty()) return false;
  const int32_t code = answers.group_status
                           ? *answers.group_status
                           : (events.thread_code != 0 ? events.thread_code : events.leader_code);
  if ((code & kSignalMask) == 0 || !IsCoreSignal(code & kSignalMask)) return false;
  return std::nullopt;
}

void ThreadGroup::DateEnd() {
  // The exit of a thread within the time in which the group must have died is the time of its
  // death. If its code differs from the group's, it was not the last one.
  const bool has_last_code =
      !answers.group_status || (*answers.group_status & ~kCoreFlag) == LastCode();
  times.ended_by_kernel =
      events.last_event_ns != 0 && events.last_event_ns >= times.alive_ns && has_last_code;
  if (!times.ended_by_kernel) {
    const uint64_t last_alive_ns = std::max(times.alive_ns, events.last_event_ns);
    times.ended_ns = times.confirmed_ns;
    times.uncertainty_ns = times.confirmed_ns - std::min(times.confirmed_ns, last_alive_ns);
  } else {
    times.ended_ns = events.last_event_ns;
    // Exits of other threads with 0 are not reported, and one with a code of its own may be on its
    // way: one of them may have been the last.
    const bool last_seen = events.released || (LastCode() != 0 && Status());
    times.uncertainty_ns =
        last_seen ? 0 : times.confirmed_ns - std::min(times.confirmed_ns, events.last_event_ns);
  }
}

}  // namespace exitwatch
