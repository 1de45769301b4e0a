#include "linux/recorder/recorder_trial.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "linux/system/opened_process.h"
#include "linux/system/proc_files.h"
#include "linux/system/trial_child.h"

namespace exitwatch {

namespace {

// The child exits with 0 when it has all signals.
bool HasExit(const Recorder& recorder, const RecorderKey& key, int32_t pid) {
  RecordedExit exit;
  uint64_t since_ns = 0;
  return recorder.Find(key, &exit, &since_ns) && exit.group.pid == pid && exit.group.status == 0 &&
         (exit.group.flags & GroupRecord::kStatusKnown) != 0;
}

}  // namespace

TraceTrial TryRecorder(Recorder& recorder, const KernelClock& clock) {
  TraceTrial trial;
  if (!ReadProcStat(getpid(), &trial.sender)) {
    trial.error = {Failure::kNoProc, errno, "open"};
    return trial;
  }
  trial.sender_uid = geteuid();
  RecorderKey key = {};
  SystemError watched;
  const auto watch = [&](int32_t pid) {
    OpenedProcess child;
    watched = child.Open(pid);
    if (watched) return;
    key = recorder.KeyOf(pid, child.stat.start_ticks, child.inode);
    if (!recorder.Watch(key)) watched = {Failure::kSystem, errno, "BPF_MAP_UPDATE_ELEM"};
  };
  const TrialChild::Result result = TrialChild::Run(clock, watch, [](int32_t) {});
  trial.child = result.identity;
  trial.sender_thread = result.sender_thread;
  trial.error = watched ? watched : result.error;
  if (trial.error) return trial;

  const auto take = [&](const SignalRecord& record) {
    const bool is_sent = record.signal != 0 && (record.flags & SignalRecord::kTaken) == 0;
    if (!is_sent || record.pid != trial.child.pid) return;
    const auto is_same = [&](const SignalRecord& other) {
      return other.signal == record.signal && other.time_ns == record.time_ns;
    };
    // One that is blocked is in the table and in the ring.
    const std::vector<SignalRecord>& all = trial.records;
    if (std::none_of(all.begin(), all.end(), is_same)) {
      trial.records.push_back(ForJavaScript(record, clock));
    }
  };
  for (const SignalRecord& record : recorder.SignalsOf(key)) take(record);
  // Those that our program catches, and thus the child as well.
  recorder.ReadSignals(std::numeric_limits<size_t>::max(),
                       [&](const RecordedExit*, const SignalRecord* record, uint64_t) {
                         if (record != nullptr) take(*record);
                       });
  recorder.ReadSignalsAgain();  // some may be strangers'
  if (!HasExit(recorder, key, trial.child.pid)) {
    trial.error = {Failure::kSystem, ENODATA, "sched_process_exit"};
  }
  recorder.Forget(key);
  return trial;
}

}  // namespace exitwatch
