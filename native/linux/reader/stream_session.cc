#include "linux/reader/stream_session.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kProofNs = 1000 * kMillisecond;

// How many times to resubscribe to a stream that went silent.
constexpr int kResubscriptions = 3;

// Timestamps are taken before queueing, so the stream is slightly out of order across CPUs: by 0.3
// ms at worst on 6.18.
constexpr uint64_t kDisorderNs = kMillisecond;

}  // namespace

StreamSession::StreamSession(const ConnectorStream::Options& options, uint64_t canary_interval_ns,
                             Shared& shared, WatchedBitmap& watched, CgroupPaths& cgroups,
                             const KernelClock& clock, ReaderEpoll& epoll, StreamHandover& handover,
                             ExitCollector& collector, std::function<void(bool)> serve_pidfds)
    : clock_(clock),
      shared_(shared),
      epoll_(epoll),
      handover_(handover),
      collector_(collector),
      serve_pidfds_(std::move(serve_pidfds)),
      own_tgid_(getpid()),
      stream_(options, watched, cgroups),
      silence_(shared.canary, canary_interval_ns) {}

SystemError StreamSession::Open() {
  SystemError error = stream_.Open(shared_.types, epoll_.stop_fd());
  if (!error) error = handover_.Attach(stream_);
  // Edge-triggered: one wakeup per request of the kernel.
  if (!error && stream_.has_ebpf_filter()) {
    error = epoll_.Add(stream_.ring_fd(), ReaderEpoll::Source::kRing, EPOLLIN | EPOLLET);
  }
  if (error) return error;
  {
    const std::lock_guard<std::mutex> lock(filter_mutex_);
    filter_refusal_ = stream_.filter_refusal();
  }
  is_open_ = true;
  collector_.SetStream(stream_.has_ebpf_filter() ? StreamKind::kGroups : StreamKind::kThreads);
  return {};
}

void StreamSession::Close() {
  stream_.Close();
  handover_.Detach();
  failure_ = {};
  is_open_ = false;
}

SystemError StreamSession::Prove() {
  if (const SystemError error = silence_.Begin(clock_.Now())) return error;
  const uint64_t deadline_ns = clock_.Now() + kProofNs;
  for (;;) {
    Read();
    if (stream_.has_ebpf_filter()) ReadEvents();
    if (failure_) return std::exchange(failure_, {});
    if (silence_.IsProven()) return {};
    const uint64_t now_ns = clock_.Now();
    if (now_ns >= deadline_ns) return {Failure::kSilent, 0, "recvmsg"};
    pollfd waiting[] = {{stream_.fd(), POLLIN, 0},
                        {epoll_.stop_fd(), POLLIN, 0},
                        {collector_.pidfds_fd(), POLLIN, 0}};
    const uint64_t next_ns = std::min(deadline_ns, collector_.NextDeadline());
    poll(waiting, 3,
         next_ns <= now_ns ? 1 : static_cast<int>((next_ns - now_ns) / kMillisecond) + 1);
    if (epoll_.is_stopping()) return {Failure::kSystem, ECANCELED, "poll"};
    serve_pidfds_((waiting[2].revents & POLLIN) != 0);
  }
}

SystemError StreamSession::Subscribe() {
  failure_ = {};
  if (const SystemError error = stream_.Subscribe(epoll_.stop_fd())) return error;
  return handover_.Attach(stream_);
}

SystemError StreamSession::Resubscribe() {
  SystemError error;
  for (int i = 0; i < kResubscriptions; i++) {
    error = Subscribe();
    if (!error) error = Prove();
    if (error.code != Failure::kSilent) break;
  }
  return error;
}

bool StreamSession::Read() {
  if (!stream_.has_ebpf_filter()) return ReadEvents();
  const ConnectorStream::Read read =
      stream_.ReadRecords([this](const GroupReport& report) { OnReport(report); });
  return read != ConnectorStream::Read::kMore;
}

bool StreamSession::ReadEvents() {
  uint64_t rejected = 0;
  const ConnectorStream::Read read =
      stream_.ReadEvents([this](const ProcEvent& event) { OnEvent(event); }, &rejected, &failure_);
  if (rejected != 0) rejected_.fetch_add(rejected, std::memory_order_relaxed);
  return read != ConnectorStream::Read::kMore;
}

void StreamSession::ReadDoorbells() {
  if (!stream_.has_ebpf_filter()) return;
  const bool is_canary_due = is_open_ && clock_.Now() >= silence_.Deadline();
  if (std::exchange(is_readable_, false) || is_canary_due) ReadEvents();
}

void StreamSession::OnEvent(const ProcEvent& event) {
  read_++;
  silence_.OnEvent(clock_.Now(), event.timestamp_ns);
  if (!stream_.has_ebpf_filter()) last_event_ns_ = std::max(last_event_ns_, event.timestamp_ns);
  if (event.what != kProcEventFork && event.tgid == own_tgid_) {
    silence_.OnThreadExit(event.pid);
  } else {
    collector_.OnEvent(event);
  }
}

void StreamSession::OnReport(const GroupReport& report) {
  const GroupRecord& record = report.group;
  read_++;
  silence_.OnEvent(clock_.Now(), record.time_ns);
  last_event_ns_ = std::max(last_event_ns_, record.time_ns);
  collector_.OnReport(report);
}

uint64_t StreamSession::SettledUntil(bool is_empty, uint64_t begin_ns) const {
  return is_empty ? begin_ns : last_event_ns_ - std::min(last_event_ns_, kDisorderNs);
}

bool StreamSession::CountsStorm(uint64_t since_ns, uint64_t now_ns) {
  rate_.Add(std::exchange(read_, 0), since_ns, now_ns);
  return rate_.IsStorm(now_ns);
}

uint64_t StreamSession::Deadline() const {
  return std::min(is_open_ ? silence_.Deadline() : kNever, loss_.Deadline());
}

bool StreamSession::ProbeForBreak() {
  if (!is_open_) return false;
  return failure_ ||
         silence_.Probe(clock_.Now(), loss_.is_noticed()) == SilenceDetector::Finding::kSilent;
}

// Set once: proofs that come later belong to the next subscription.
void StreamSession::BeginSilence() {
  if (silent_since_ns_ == 0) silent_since_ns_ = silence_.last_stamp_ns();
}

bool StreamSession::RecordsCome() const {
  return is_open_ && stream_.has_ebpf_filter() && !failure_ && silent_since_ns_ == 0;
}

std::optional<StreamProperties> StreamSession::properties() const {
  return is_open_ ? std::optional<StreamProperties>(stream_.properties()) : std::nullopt;
}

BpfRefusal StreamSession::filter_refusal() {
  const std::lock_guard<std::mutex> lock(filter_mutex_);
  return filter_refusal_;
}

std::optional<uint64_t> StreamSession::NsSinceProof() const {
  const uint64_t proof_ns = silence_.proof_ns();
  if (proof_ns == 0 || !is_open_) return {};
  return clock_.Now() - std::min(clock_.Now(), proof_ns);
}

}  // namespace exitwatch
