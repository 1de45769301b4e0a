#include "linux/reader/stream_repair.h"

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// How many canary intervals to wait before retrying a stream that was given up.
constexpr int kRetryIntervals = 3;

// How long to wait after a shortage of descriptors, threads or memory.
constexpr uint64_t kShortageNs = 1000 * kMillisecond;

// How soon to look again at watches that could not be looked at after a gap and, without a stream,
// at those that nothing else reports.
constexpr uint64_t kRecheckNs = 100 * kMillisecond;
constexpr uint64_t kRecheckWithoutStreamNs = 1000 * kMillisecond;

}  // namespace

StreamRepair::StreamRepair(const Options& options, const KernelClock& clock,
                           const ReaderEpoll& epoll, StreamSession& session,
                           ExitCollector& collector, WatchedProcesses& watched,
                           ExitDelivery& delivery)
    : options_(options),
      clock_(clock),
      epoll_(epoll),
      session_(session),
      collector_(collector),
      watched_(watched),
      delivery_(delivery) {}

void StreamRepair::ReportLoss() {
  GapRecord gap;
  gap.from_ns = static_cast<double>(session_.loss().begin_ns());
  gap.lost = static_cast<double>(session_.loss().Take(session_.Drops()));
  Repair(gap, session_.loss().complete_ns());
}

void StreamRepair::RepairWhatIsDue(uint64_t begin_ns) {
  // After a shortage, do not probe again before the time to retry.
  const bool waits = session_.has_failed() && retry_ns_ != kNever && clock_.Now() < retry_ns_;
  if (!waits && session_.ProbeForBreak()) RepairBreak();
  if (!session_.is_open() && begin_ns >= retry_ns_) RetryStream();
  if (begin_ns >= recheck_ns_) RecheckWatches();
}

// Resubscribes to a stream that went silent or broke, and reports a gap, because exits in between
// are unknown. After a shortage of descriptors, threads or memory, tries again later. If
// resubscribing fails, falls back to pidfds.
void StreamRepair::RepairBreak() {
  retry_ns_ = kNever;
  session_.BeginSilence();
  const SystemError error = session_.Resubscribe();
  if (epoll_.is_stopping()) return;
  if (error && error.IsShortage()) {
    session_.SetFailure(error);
    retry_ns_ = clock_.Now() + kShortageNs;
    return;
  }
  if (error && options_.is_stream_required) {
    failure_ = error;
    return;
  }
  if (error) GiveUpStream(error);
  const uint64_t silent_since_ns = session_.silent_since_ns();
  session_.EndSilence();
  GapRecord gap;
  gap.reason = GapReason::kSilenced;
  gap.from_ns = static_cast<double>(silent_since_ns);
  Repair(gap, silent_since_ns);
  if (error) delivery_.StageSource(RecordKind::kSource, error, session_.properties());
}

void StreamRepair::GiveUpStream(const SystemError& error) {
  session_.Close();
  collector_.SetStream(StreamKind::kNone);
  recheck_ns_ = watched_.without_pidfd() > 0 ? clock_.Now() : kNever;
  const bool may_come_back = error.code == Failure::kSilent || error.code == Failure::kSystem;
  retry_ns_ = may_come_back && options_.canary_interval_ns != 0
                  ? clock_.Now() + kRetryIntervals * options_.canary_interval_ns
                  : kNever;
}

void StreamRepair::RetryStream() {
  SystemError error = session_.Open();
  if (!error) error = session_.Prove();
  if (error) {
    GiveUpStream(error);
    return;
  }
  retry_ns_ = kNever;
  session_.loss().Disregard(session_.Drops());
  RecheckWatches();
  delivery_.StageSource(RecordKind::kSource, {}, session_.properties());
}

// Reports a gap, and looks at everything whose exit may lie in it. All exits before `reported_ns`
// were reported.
void StreamRepair::Repair(GapRecord gap, uint64_t reported_ns) {
  collector_.ForgetUnconfirmed();
  reported_ns_ = reported_ns;
  gap.recovered = RecheckWatches();
  delivery_.SetGapEnd(clock_.Now());
  if (!options_.watched_only) collector_.ReadProcesses(epoll_.is_stopping(), reported_ns_);
  delivery_.StageGap(gap);
}

int32_t StreamRepair::RecheckWatches() {
  const WatchedProcesses::Ended ended = collector_.RecheckWatches(reported_ns_);
  const uint64_t after_ns = session_.is_open() ? kRecheckNs : kRecheckWithoutStreamNs;
  recheck_ns_ = ended.is_complete ? kNever : clock_.Now() + after_ns;
  return ended.count;
}

}  // namespace exitwatch
