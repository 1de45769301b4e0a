#include "linux/bpf/oom_victims.h"

#include <algorithm>
#include <csignal>

namespace exitwatch {

namespace {

constexpr size_t kVictims = 64;

// Right after its victim, the OOM killer kills the processes that share the victim's memory. In
// between it writes to the kernel's log, and a serial console is slow.
constexpr uint64_t kVictimNs = 10'000'000'000;

}  // namespace

void OomVictims::OnRecord(SignalRecord* record) {
  if (record->signal == 0) {
    if (victims_.size() == kVictims) victims_.erase(victims_.begin());
    victims_.push_back(
        {record->memory, record->time_ns, record->sender_thread, record->sender_start});
  } else if (IsOfVictim(*record)) {
    record->flags |= SignalRecord::kOom;
  }
}

// Processes that share a victim's memory are killed with it, but not marked. The OOM killer does
// that in one go, and holds on to the memory meanwhile. If the same address shows up later, or in a
// signal from another thread, it is other memory. A sender that is exiting may be the first process
// of a pid namespace, whose exit kills all others.
bool OomVictims::IsOfVictim(const SignalRecord& record) const {
  const bool is_by_kernel = (record.flags & SignalRecord::kPrivileged) != 0 &&
                            (record.flags & SignalRecord::kSenderExiting) == 0;
  if (record.signal != SIGKILL || !is_by_kernel) return false;
  return std::any_of(victims_.begin(), victims_.end(), [&](const Victim& victim) {
    return victim.memory != 0 && victim.memory == record.memory &&
           victim.by_thread == record.sender_thread && victim.by_start == record.sender_start &&
           victim.time_ns <= record.time_ns && record.time_ns - victim.time_ns < kVictimNs;
  });
}

}  // namespace exitwatch
