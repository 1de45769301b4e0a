#include "core/groups/thread_group.h"

#include <algorithm>

namespace exitwatch {

namespace {

constexpr int32_t kSignalMask = 0x7f;

// By it seccomp may end a single thread; every other signal ends the group.
constexpr int32_t kSigSys = 31;

// Whether a thread ends with this code only together with its group.
bool EndsGroup(int32_t code) {
  const int32_t signal = code & kSignalMask;
  return signal != 0 && signal != kSigSys;
}

// A code that some thread left behind this long before the leader ended by itself was that thread's
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

void ThreadGroup::AddLeaderExit(const ProcEvent& event) {
  leader_known = true;
  leader_code = event.exit_code & ~kCoreFlag;
  leader_ns = event.timestamp_ns;
  released = event.parent_tgid == 0;
  parent_pid = event.parent_tgid;
  last_event_ns = std::max(last_event_ns, event.timestamp_ns);
  core_flag = core_flag || (event.exit_code & kCoreFlag) != 0;
  dumpers.erase(std::remove(dumpers.begin(), dumpers.end(), event.pid), dumpers.end());
}

void ThreadGroup::AddThreadExit(const ProcEvent& event) {
  // Across CPUs, events do not arrive in the order of their timestamps.
  const int32_t code = event.exit_code & ~kCoreFlag;
  has_several_codes = has_several_codes || (thread_code != 0 && thread_code != code);
  if (event.timestamp_ns >= thread_ns || EndsGroup(code)) {
    // A signal counts more than a stamp.
    if (!EndsGroup(thread_code)) thread_code = code;
    thread_ns = std::max(thread_ns, event.timestamp_ns);
  }
  last_event_ns = std::max(last_event_ns, event.timestamp_ns);
  core_flag = core_flag || (event.exit_code & kCoreFlag) != 0;
  dumpers.erase(std::remove(dumpers.begin(), dumpers.end(), event.pid), dumpers.end());
}

void ThreadGroup::AddCoredump(const ProcEvent& event) {
  core_announced = true;
  dumpers.push_back(event.pid);
}

void ThreadGroup::ForgetEvents() {
  leader_known = released = core_flag = core_announced = false;
  has_several_codes = leader_first = false;
  leader_code = thread_code = 0;
  leader_ns = thread_ns = last_event_ns = 0;
  dumpers.clear();
}

void ThreadGroup::NoteZombieCode(int32_t code, bool is_status) {
  if (is_status || EndsGroup(code)) {
    group_status = code;
    is_of_handle = false;
    group_status_has_core = is_status;
  } else {
    first_code = code;
  }
}

void ThreadGroup::NoteEndingCode(int32_t code) {
  if (code == 0) {
    thread_code = 0;
    has_several_codes = false;
  } else if ((code & ~kCoreFlag) == thread_code) {
    ending_status = code;
  }
}

void ThreadGroup::NoteHandleStatus(std::optional<int32_t> status) {
  group_status = status;
  is_of_handle = status.has_value();
}

bool ThreadGroup::IsDisputed() const {
  if (!group_status || !is_of_handle || leader_first || thread_code == 0) return false;
  const int32_t told = *group_status & ~kCoreFlag;
  if (told == thread_code || EndsGroup(told)) return false;
  // The first thread's own was overwritten, or long after the other's.
  return !leader_known || (told == leader_code && leader_ns <= thread_ns + kUnrelatedAfterNs);
}

bool ThreadGroup::MayBeFirsts() const {
  return group_status == 0 && is_of_handle && !leader_first && thread_code == 0;
}

void ThreadGroup::ForgetStat() {
  has_stat = has_doubtful_stat = false;
  group_status.reset();
  is_of_handle = false;
  first_code.reset();
  group_status_has_core = false;
  uid.reset();
  inode = 0;
}

GroupIdentity ThreadGroup::Identity() const {
  return {pid, has_stat ? stat.start_ticks : start_ticks, inode != 0 ? inode : expected_inode, 0,
          start_ns};
}

std::optional<int32_t> ThreadGroup::Status() const {
  int32_t status;
  if (group_status && !is_of_handle) {
    status = *group_status & ~kCoreFlag;
  } else if (ending_status) {
    status = *ending_status & ~kCoreFlag;
  } else if (group_status && !IsDisputed()) {
    status = *group_status & ~kCoreFlag;
  } else if (group_status || IsContradictory()) {
    return std::nullopt;
  } else if (thread_code == 0 && !leader_known) {
    if (first_code != 0 || !has_all_codes) return std::nullopt;
    status = 0;
  } else if (thread_code == 0) {
    status = leader_code;
  } else if (leader_code == 0) {
    // The leader of a group that was ended by another thread may have left before it, with 0: the
    // other code is the group's.
    const bool unrelated = leader_known && leader_ns > thread_ns + kUnrelatedAfterNs;
    status = unrelated ? 0 : thread_code;
  } else if (EndsGroup(leader_code) || EndsGroup(thread_code)) {
    status = EndsGroup(thread_code) ? thread_code : leader_code;
  } else {
    status = leader_ns > thread_ns ? leader_code : thread_code;
  }
  if ((status & kSignalMask) != 0 && CoreDumped().value_or(false)) status |= kCoreFlag;
  return status;
}

bool ThreadGroup::IsContradictory() const {
  if (IsConclusive()) return false;
  if (leader_first) return leader_code != 0 || thread_code != 0;
  if (leader_code == 0) return MayBeItsOwn();
  return thread_code != 0 && leader_ns <= thread_ns + kUnrelatedAfterNs;
}

bool ThreadGroup::MayBeItsOwn() const {
  return thread_code != 0 && leader_known && !leader_first && thread_ns <= leader_ns &&
         leader_ns <= thread_ns + kUnrelatedAfterNs;
}

bool ThreadGroup::IsConclusive() const {
  if (EndsGroup(leader_code) || EndsGroup(thread_code)) return true;
  if (thread_code == 0) return false;
  if (has_several_codes) return false;
  return leader_code == 0 ? !MayBeItsOwn() : thread_code == leader_code;
}

std::optional<bool> ThreadGroup::CoreDumped() const {
  if (core_flag) return true;
  if (group_status && (*group_status & kCoreFlag) != 0) return true;
  if (group_status && group_status_has_core) return false;
  if (ending_status) return (*ending_status & kCoreFlag) != 0;
  // Every dump is announced before it is written, so threads that announced one and ended without
  // the flag wrote none.
  if (core_announced && dumpers.empty()) return false;
  const int32_t code =
      group_status ? *group_status : (thread_code != 0 ? thread_code : leader_code);
  if ((code & kSignalMask) == 0 || !IsCoreSignal(code & kSignalMask)) return false;
  return std::nullopt;
}

void ThreadGroup::DateEnd() {
  // A thread's exit within the time in which the group must have died is the time of its death.
  // With another code than the group's it was not the last one.
  const bool has_last_code = !group_status || (*group_status & ~kCoreFlag) == LastCode();
  ended_by_kernel = last_event_ns != 0 && last_event_ns >= alive_ns && has_last_code;
  if (!ended_by_kernel) {
    const uint64_t last_alive_ns = std::max(alive_ns, last_event_ns);
    ended_ns = confirmed_ns;
    uncertainty_ns = confirmed_ns - std::min(confirmed_ns, last_alive_ns);
  } else {
    ended_ns = last_event_ns;
    // Exits of other threads with 0 are not seen, and one with a code of its own may be on its way:
    // one of them may have been the last.
    const bool last_seen = released || (LastCode() != 0 && Status());
    uncertainty_ns = last_seen ? 0 : confirmed_ns - std::min(confirmed_ns, last_event_ns);
  }
}

}  // namespace exitwatch
