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

// What the signal trace tells of signals whose senders are known: a child of ours was sent them.
// src/trace/trial.ts judges it.
struct TraceTrial {
  SystemError error;  // why there was none
  GroupIdentity child;
  int32_t sender_thread = 0;
  uint32_t sender_uid = 0;
  ProcStat sender;                    // our own
  std::vector<SignalRecord> records;  // as JavaScript reads them
};

// Takes place once in each process; who asks meanwhile waits for it. One that could not be held, or
// of which something was lost, is held again for the next who asks. What else there is to read goes
// to `visit_other`. `watched`: as for SignalTrace::Open().
std::shared_ptr<const TraceTrial> TryTrace(
    SignalTrace& trace, WatchedBitmap* watched, const KernelClock& clock,
    const std::function<void(const SignalRecord&)>& visit_other);

// As JavaScript reads it: in clock ticks, and without addresses of the kernel.
SignalRecord ForJavaScript(SignalRecord record, const KernelClock& clock);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_TRACE_TRIAL_H_
