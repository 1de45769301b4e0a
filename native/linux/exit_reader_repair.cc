// What the reader does when the stream has lost something, went silent, or breaks.
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "linux/exit_reader.h"

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kNever = UINT64_MAX;
constexpr int kCanaryMs = 1000;

// How often a stream that has gone silent is subscribed to anew.
constexpr int kResubscriptions = 3;

// After so many intervals of the canary, a stream that was given up is tried again.
constexpr int kRetryIntervals = 3;

// Descriptors, threads and memory that were lacking are asked for again.
constexpr uint64_t kShortageNs = 1000 * kMillisecond;

// Watches that could not be looked at after a gap are looked at again; and those that nothing
// tells, until they have ended.
constexpr uint64_t kRecheckNs = 100 * kMillisecond;
constexpr uint64_t kRecheckWithoutStreamNs = 1000 * kMillisecond;

}  // namespace

SystemError ExitReader::OpenStream() {
  SystemError error = stream_.Open(shared_->types, stop_.Get());
  if (!error) error = AddSocketToEpoll();
  // Once for each time that the kernel asks for us.
  if (!error && stream_.is_group_aware()) {
    error = AddToEpoll(stream_.ring_fd(), kRingTag, EPOLLIN | EPOLLET);
  }
  if (error) return error;
  {
    const std::lock_guard<std::mutex> lock(filter_mutex_);
    filter_refusal_ = stream_.filter_refusal();
  }
  has_stream_ = true;
  watched_.SetStream(stream_.is_group_aware() ? WatchedProcesses::Stream::kRecords
                                              : WatchedProcesses::Stream::kEvents);
  aggregator_->SetStream(stream_.is_group_aware() ? ThreadGroupAggregator::Stream::kGroups
                                                  : ThreadGroupAggregator::Stream::kThreads);
  return {};
}

// Opens the stream's socket anew, in place of the one before.
SystemError ExitReader::Subscribe() {
  stream_failure_ = {};
  if (const SystemError error = stream_.Subscribe(stop_.Get())) return error;
  return AddSocketToEpoll();
}

// A thread of our own ends, and its exit must come back through the stream.
SystemError ExitReader::ProveThatEventsArrive() {
  if (const SystemError error = silence_.Begin(clock_.Now())) return error;
  const uint64_t deadline_ns = clock_.Now() + kCanaryMs * kMillisecond;
  for (;;) {
    Drain();
    if (stream_.is_group_aware()) DrainEvents();
    if (stream_failure_) return std::exchange(stream_failure_, {});
    if (silence_.IsProven()) return {};
    const uint64_t now_ns = clock_.Now();
    if (now_ns >= deadline_ns) return {Failure::kSilent, 0, "recvmsg"};
    pollfd waiting[] = {
        {stream_.fd(), POLLIN, 0}, {stop_.Get(), POLLIN, 0}, {watched_.pidfds().fd(), POLLIN, 0}};
    const uint64_t next_ns = std::min(deadline_ns, aggregator_->NextDeadline());
    poll(waiting, 3,
         next_ns <= now_ns ? 1 : static_cast<int>((next_ns - now_ns) / kMillisecond) + 1);
    if (stopping_) return {Failure::kSystem, ECANCELED, "poll"};
    if (is_ready_) TellGuarded((waiting[2].revents & POLLIN) != 0);
  }
}

// While the stream is being repaired, pidfds do not wait for it.
void ExitReader::TellGuarded(bool has_ready) {
  if (has_ready) {
    not_ready_ns_ = wake_ns_;
    wake_ns_ = clock_.Now();
    TakeReady();
    TellReady(true);
  }
  aggregator_->Settle(clock_.Now());
  for (Record& record : staged_) {
    const bool is_in_gap = record.time_ns >= static_cast<double>(silent_since_ns_);
    if (silent_since_ns_ != 0 && is_in_gap) record.flags &= ~Record::kLossless;
  }
  Flush();
}

// From now on pidfds alone tell the ends of watched processes; those without one are looked at now
// and then.
void ExitReader::CloseStream(const SystemError& error) {
  stream_.Close();
  stream_failure_ = {};
  has_stream_ = false;
  listener_ = Listener::kThread;
  reads_in_loop_ = false;
  watched_.SetStream(WatchedProcesses::Stream::kNone);
  aggregator_->SetStream(ThreadGroupAggregator::Stream::kNone);
  recheck_ns_ = watched_.unguarded() > 0 ? clock_.Now() : kNever;
  const bool may_come_back = error.code == Failure::kSilent || error.code == Failure::kSystem;
  retry_ns_ = may_come_back && options_.canary_interval_ns != 0
                  ? clock_.Now() + kRetryIntervals * options_.canary_interval_ns
                  : kNever;
}

void ExitReader::RetryStream() {
  SystemError error = OpenStream();
  if (!error) error = ProveThatEventsArrive();
  if (error) {
    CloseStream(error);
    return;
  }
  retry_ns_ = kNever;
  drops_ = Drops();
  RecheckWatches();
  StageSource(Record::kSource, {});
}

// Who tells the ends from now on; and where it is not the stream, why.
void ExitReader::StageSource(Record::Kind kind, const SystemError& error) {
  Record record;
  record.kind = kind;
  record.time_ns = static_cast<double>(clock_.Now());
  record.clock_ms = static_cast<double>(clock_.realtime_offset_ns()) / 1e6;
  if (has_stream_) record.count = static_cast<double>(stream_.buffer_bytes());
  if (!has_stream_) record.flags |= Record::kNoStream;
  if (has_stream_ && stream_.names_programs()) record.flags |= Record::kNamesPrograms;
  record.uid = static_cast<uint32_t>(error.code);
  record.status = error.number;
  std::strncpy(record.name, error.syscall, sizeof(record.name) - 1);
  staged_.push_back(record);
}

// Compares the kernel's count of dropped messages with what was told of it.
void ExitReader::NoticeDrops() {
  if (Drops() == drops_) return;
  if (loss_begin_ns_ == 0) {
    loss_begin_ns_ = no_drops_ns_;
    loss_noticed_ns_ = clock_.Now();
  }
  gap_end_ns_ = clock_.Now();
}

// What was read after something was dropped, and before that was noticed, has seen the loss.
void ExitReader::DoubtStaged() {
  if (loss_begin_ns_ == 0) return;
  for (Record& record : staged_) {
    if (record.time_ns >= static_cast<double>(loss_begin_ns_)) record.flags &= ~Record::kLossless;
  }
}

void ExitReader::TellDrops() {
  const uint64_t drops = Drops();
  Record gap;
  gap.from_ns = static_cast<double>(std::exchange(loss_begin_ns_, 0));
  gap.count = static_cast<double>(drops - std::exchange(drops_, drops));
  RepairAfterGap(gap, no_drops_ns_);
}

// Subscribes anew to a stream that has gone silent, or is broken, and tells that nobody knows what
// ended meanwhile. Where only a descriptor, a thread or memory is lacking, that is tried again
// later; where it does not help, pidfds have to do.
void ExitReader::NoticeFailure() {
  if (!has_stream_) return;
  // What was lacking before may be there now.
  if (stream_failure_ && retry_ns_ != kNever && clock_.Now() < retry_ns_) return;
  if (!stream_failure_ && !silence_.IsSilent(clock_.Now(), loss_begin_ns_ != 0)) return;
  retry_ns_ = kNever;
  // Proofs that come on the way are of the next subscription.
  if (silent_since_ns_ == 0) silent_since_ns_ = silence_.last_stamp_ns();
  const SystemError error = SubscribeAnew();
  if (stopping_) return;
  if (error && error.IsShortage()) {
    stream_failure_ = error;
    retry_ns_ = clock_.Now() + kShortageNs;
    return;
  }
  if (error && options_.use == StreamUse::kRequired) {
    failure_ = error;
    return;
  }
  if (error) CloseStream(error);
  Record gap;
  gap.flags = Record::kSilenced;
  gap.from_ns = static_cast<double>(silent_since_ns_);
  RepairAfterGap(gap, std::exchange(silent_since_ns_, 0));
  if (error) StageSource(Record::kSource, error);
}

SystemError ExitReader::SubscribeAnew() {
  SystemError error;
  for (int i = 0; i < kResubscriptions; i++) {
    error = Subscribe();
    if (!error) error = ProveThatEventsArrive();
    if (error.code != Failure::kSilent) break;
  }
  return error;
}

// Tells the gap, and looks at everything whose exit may lie in it; until `told_ns` all was told.
void ExitReader::RepairAfterGap(Record gap, uint64_t told_ns) {
  gap.kind = Record::kGap;
  aggregator_->ForgetUnconfirmed();
  told_ns_ = told_ns;
  gap.status = RecheckWatches();
  gap_end_ns_ = clock_.Now();
  if (!options_.stream.watched_only) ReadProcesses();
  gap.time_ns = static_cast<double>(gap_end_ns_);
  gap.clock_ms = static_cast<double>(clock_.realtime_offset_ns()) / 1e6;
  staged_.push_back(gap);
}

int32_t ExitReader::RecheckWatches() {
  const WatchedProcesses::Ended ended = watched_.CheckAll(*witness_, *aggregator_, told_ns_);
  const uint64_t after_ns = has_stream_ ? kRecheckNs : kRecheckWithoutStreamNs;
  recheck_ns_ = ended.is_complete ? kNever : clock_.Now() + after_ns;
  return ended.count;
}

}  // namespace exitwatch
