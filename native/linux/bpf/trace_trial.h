#ifndef EXITWATCH_LINUX_BPF_TRACE_TRIAL_H_
#define EXITWATCH_LINUX_BPF_TRACE_TRIAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "abi/signal_record.h"
#include "core/groups/group_identity.h"
#include "core/parse/proc_stat.h"
#include "linux/bpf/signal_trace.h"
#include "linux/bpf/watched_bitmap.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/system_error.h"

namespace exitwatch {

// What the signal trace reports about signals from known senders, which were sent to a child of
// ours. src/trace/trial.ts judges it.
struct TraceTrial {
  SystemError error;  // why there was no trial
  GroupIdentity child;
  int32_t sender_thread = 0;
  uint32_t sender_uid = 0;
  ProcStat sender;                    // our own
  std::vector<SignalRecord> records;  // as JavaScript reads them
};

// Runs once per process; concurrent callers wait for it. If the trial was not possible, or lost
// something, the next caller repeats it. `visit_other` gets all other records. `watched`: as for
// SignalTrace::Open().
std::shared_ptr<const TraceTrial> TryTrace(
    SignalTrace& trace, WatchedBitmap* watched, const KernelClock& clock,
    const std::function<void(const SignalRecord&)>& visit_other);

// Converts a record for JavaScript: start times in clock ticks, no kernel addresses.
SignalRecord ForJavaScript(SignalRecord record, const KernelClock& clock);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_TRACE_TRIAL_H_
