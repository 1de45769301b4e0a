#include "linux/bpf/trace_trial.h"

#include <unistd.h>

#include <cstring>
#include <mutex>

#include "linux/system/proc_files.h"
#include "linux/system/trial_child.h"

namespace exitwatch {

namespace {

std::mutex mutex;
std::shared_ptr<const TraceTrial> settled;  // guarded by mutex

bool ReadOurselves(ProcStat* stat, SystemError* error) {
  if (ReadProcStat(getpid(), stat)) return true;
  *error = {Failure::kNoProc, errno, "open"};
  return false;
}

// True if nothing interfered.
bool Hold(SignalTrace& trace, WatchedBitmap* watched, const KernelClock& clock,
          const std::function<void(const SignalRecord&)>& visit_other, TraceTrial* trial) {
  const auto watch = [&](bool is_watched) {
    return [=](int32_t pid) {
      if (watched != nullptr) watched->Set(pid, is_watched);
    };
  };
  if (!ReadOurselves(&trial->sender, &trial->error)) return false;
  trial->sender_uid = geteuid();
  const uint64_t lost = trace.Lost();
  const TrialChild::Result result = TrialChild::Run(clock, watch(true), watch(false));
  trial->error = result.error;
  trial->child = result.identity;
  trial->sender_thread = result.sender_thread;
  const bool is_whole = trace.Read([&](const SignalRecord& record) {
    if (record.signal != 0 && record.pid == trial->child.pid) {
      trial->records.push_back(ForJavaScript(record, clock));
    } else {
      visit_other(record);
    }
  });
  ProcStat after;
  if (trial->error || !ReadOurselves(&after, &trial->error)) return false;
  const bool is_same = std::strcmp(after.name, trial->sender.name) == 0 &&
                       after.parent_pid == trial->sender.parent_pid;
  if (is_whole && is_same && trace.Lost() == lost) return true;
  // Interference says nothing about the kernel.
  trial->error = {Failure::kSystem, EAGAIN, "read"};
  return false;
}

}  // namespace

std::shared_ptr<const TraceTrial> TryTrace(
    SignalTrace& trace, WatchedBitmap* watched, const KernelClock& clock,
    const std::function<void(const SignalRecord&)>& visit_other) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (settled) return settled;
  // Somebody may have killed the child, or renamed us.
  constexpr int kTries = 2;
  std::shared_ptr<TraceTrial> trial;
  for (int tries = 0; tries < kTries && !settled; tries++) {
    // std::make_shared() would require a newer libstdc++ than some users have.
    trial = std::shared_ptr<TraceTrial>(new TraceTrial);
    if (Hold(trace, watched, clock, visit_other, trial.get())) settled = trial;
  }
  return trial;
}

SignalRecord ForJavaScript(SignalRecord record, const KernelClock& clock) {
  record.clock_ms = static_cast<double>(clock.realtime_offset_ns()) / 1e6;
  record.memory = 0;
  record.start_ns = record.start_ns == 0 ? 0 : clock.TickOfStart(record.start_ns);
  record.sender_start = record.sender_start == 0 ? 0 : clock.TimeOfStart(record.sender_start);
  return record;
}

}  // namespace exitwatch
