#ifndef EXITWATCH_LINUX_RECORDER_RECORDER_TRIAL_H_
#define EXITWATCH_LINUX_RECORDER_RECORDER_TRIAL_H_

#include "linux/bpf/trace_trial.h"
#include "linux/recorder/recorder.h"
#include "linux/system/kernel_clock.h"

namespace exitwatch {

// What a new recorder reports about signals that were sent to a child of ours, and about the
// child's exit: without the right status, the trial has failed with ENODATA.
TraceTrial TryRecorder(Recorder& recorder, const KernelClock& clock);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_RECORDER_RECORDER_TRIAL_H_
