// One idea: the reader's rounds, each of which sleeps, reads and delivers, in one thread or the
// other.
#include "linux/reader/exit_reader.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "linux/system/pidfd.h"
#include "linux/system/proc_files.h"
#include "linux/system/stat_code_trial.h"

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// How long to hold exits in a storm, so that they cross together.
constexpr int kStormMs = 1;

// Without the eBPF filter, nothing wakes the reader when the kernel's buffer fills up.
constexpr int kLongestHoldMs = 50;

// How many times the loop reads on before it yields.
constexpr int kReadsInLoop = 8;

// A timeout for epoll_wait(2): rounded up; -1 for none.
int TimeoutMs(uint64_t deadline_ns, uint64_t now_ns) {
  if (deadline_ns == std::numeric_limits<uint64_t>::max()) return -1;
  return deadline_ns <= now_ns ? 0 : static_cast<int>((deadline_ns - now_ns) / kMillisecond) + 1;
}

}  // namespace

ExitReader::ExitReader(const Options& options, std::shared_ptr<Shared> shared,
                       std::function<void()> wake)
    : options_(options),
      shared_(std::move(shared)),
      signals_(cgroups_, options.tells_command_lines),
      watched_(
          {options.opens_pidfds, !options.stream.watched_only, options.use != StreamUse::kNone},
          cgroups_, [this] { epoll_.Wake(); }),
      watched_bitmap_(watched_.set()),
      delivery_({options.stream.watched_only, options.queue_limit}, clock_, cgroups_, signals_,
                std::move(wake)),
      collector_({options.stream.watched_only, options.status_timeout_ns, signals_.command_lines()},
                 clock_, watched_, delivery_),
      handover_(epoll_),
      session_(StreamOptions(), options.canary_interval_ns, *shared_, watched_bitmap_, cgroups_,
               clock_, epoll_, handover_, collector_,
               [this](bool has_ready) { ServePidfds(has_ready); }),
      repair_({options.stream.watched_only, options.use == StreamUse::kRequired,
               options.canary_interval_ns},
              clock_, epoll_, session_, collector_, watched_, delivery_),
      pidfds_(watched_.pidfds(), session_.stream()) {}

ExitReader::~ExitReader() { Stop(); }

ConnectorStream::Options ExitReader::StreamOptions() {
  ConnectorStream::Options options = options_.stream;
  options.is_held = options_.max_delay_ns > 0;
  options.command_lines = signals_.command_lines();
  return options;
}

SystemError ExitReader::Start() {
  if (const SystemError error = epoll_.Open()) return error;
  if (const SystemError error = handover_.Open()) return error;
  if (const SystemError error = signals_.Begin()) return error;
  if (const SystemError error = watched_.Open()) return error;
  const int error = thread_.Start("exitwatch", [this] { Run(); });
  if (error != 0) return {Failure::kSystem, error, "pthread_create"};
  return {};
}

void ExitReader::Stop() {
  epoll_.Stop();
  thread_.Join();
  collector_.Close();
  session_.Release();
  signals_.Close();
  watched_bitmap_.Close();
  watched_.Clear();
  pidfds_.Close();
  epoll_.Close();
  handover_.Close();
}

void ExitReader::Run() {
  const std::lock_guard<std::mutex> lock(reading_);
  SystemError error = Arm();
  signals_.Settle();
  while (!error && !epoll_.is_stopping()) {
    error = Wait();
    if (error) break;
    Round(Reader::kThread);
    error = repair_.failure();
  }
  if (error) delivery_.Fail(error);
}

SystemError ExitReader::Arm() {
  pidfds_.Open();
  // Before the stream opens: it would report the exit of the trial's child.
  StatCodeIsStatus();
  if (const SystemError error =
          epoll_.Add(watched_.pidfds().fd(), ReaderEpoll::Source::kPidfds, EPOLLIN)) {
    return error;
  }
  if (const SystemError error = OpenTrace()) return error;
  signals_.Settle();
  SystemError stream_error;
  if (options_.use != StreamUse::kNone) stream_error = session_.Open();
  if (stream_error && options_.use == StreamUse::kRequired) return stream_error;
  if (!OpenPidfd(getpid())) return {Failure::kNoPidfd, errno, "pidfd_open"};
  if (!ProcShowsOurPids()) return {Failure::kNoProc, 0, "readlink"};
  const uint64_t armed_ns = clock_.Now();
  delivery_.Begin(armed_ns);
  session_.loss().Begin(armed_ns);
  pidfds_.Begin(armed_ns);
  if (session_.is_open()) stream_error = session_.Prove();
  if (epoll_.is_stopping()) return {Failure::kSystem, ECANCELED, "poll"};
  if (stream_error && options_.use == StreamUse::kRequired) return stream_error;
  if (stream_error || !session_.is_open()) repair_.GiveUpStream(stream_error);
  watched_.Arm();
  if (!options_.stream.watched_only) collector_.ReadProcesses(epoll_.is_stopping(), 0);
  delivery_.StageSource(RecordKind::kReady, stream_error, session_.properties());
  is_ready_ = true;
  Round(Reader::kThread);
  return repair_.failure();
}

SystemError ExitReader::OpenTrace() {
  if (!options_.traces_signals) return {};
  signals_.Open(shared_->types, options_.stream.watched_only ? &watched_bitmap_ : nullptr, clock_,
                options_.spoil);
  // Edge-triggered: one wakeup per request of the kernel. Other records can wait.
  return signals_.is_open()
             ? epoll_.Add(signals_.fd(), ReaderEpoll::Source::kTrace, EPOLLIN | EPOLLET)
             : SystemError{};
}

// When something is due even if nothing comes.
uint64_t ExitReader::Deadline() const {
  return std::min(
      {collector_.NextDeadline(), repair_.Deadline(), session_.Deadline(), pidfds_.Deadline()});
}

// Sleeps until there is something to do.
SystemError ExitReader::Wait() {
  const uint64_t begin_ns = clock_.Now();
  const bool was_held = held_since_ns_ != 0;
  // Where some came, more will follow.
  bool holds = MayHold() && session_.has_read();
  const bool is_storm = session_.CountsStorm(was_held ? held_since_ns_ : begin_ns, begin_ns);
  held_since_ns_ = 0;
  sleeps_until_ns_ = Deadline();
  const int timeout_ms = TimeoutMs(sleeps_until_ns_, begin_ns);
  if (is_storm) {
    // Exits accumulate, and wake nobody.
    handover_.Listen(StreamHandover::Listener::kNobody, begin_ns);
    return Sleep(timeout_ms == 0 ? 0 : kStormMs).error;
  }
  if (!holds) {
    ChooseListener(begin_ns);
    const bool may_sleep = timeout_ms != 0 && session_.ArmDoorbell();
    const ReaderEpoll::Wakeup wakeup = Sleep(may_sleep ? timeout_ms : 0);
    // The first exit after a pause is not read before others could come.
    holds = MayHold() && wakeup.has_socket && !wakeup.is_urgent;
    if (wakeup.error || !holds) return wakeup.error;
  }
  held_since_ns_ = clock_.Now();
  handover_.Listen(StreamHandover::Listener::kHeld, held_since_ns_);
  const int most_ms = HoldMs();
  const int rest_ms = TimeoutMs(Deadline(), held_since_ns_);
  const ReaderEpoll::Wakeup wakeup = Sleep(rest_ms < 0 ? most_ms : std::min(rest_ms, most_ms));
  session_.SetReadable();  // it may have been, while nobody listened
  return wakeup.error;
}

int ExitReader::HoldMs() const {
  const auto most_ms = static_cast<int>(options_.max_delay_ns / kMillisecond);
  return session_.has_ebpf_filter() ? most_ms : std::min(most_ms, kLongestHoldMs);
}

// Whether exits may wait for others. A watched one that only the stream reports may not, nor one
// whose pidfd was faster than the record that has its status or its core.
bool ExitReader::MayHold() const {
  return options_.max_delay_ns > 0 && is_ready_ && session_.is_open() &&
         watched_.without_pidfd() == 0 && !collector_.AwaitsRecord();
}

ReaderEpoll::Wakeup ExitReader::Sleep(int timeout_ms) {
  pidfds_.BeginSleep(clock_.Now(), watched_.has_pidfds() || collector_.HasGroups());
  const ReaderEpoll::Wakeup wakeup = epoll_.Wait(timeout_ms, reading_);
  if (wakeup.error) return wakeup;
  if (timeout_ms != 0) wakeups_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t now_ns = clock_.Now();
  delivery_.OnWake(now_ns);
  if (wakeup.has_socket) session_.SetReadable();
  // The doorbell rang, but the loop did not answer.
  if (wakeup.has_ring) handover_.Withdraw();
  pidfds_.EndSleep(now_ns, wakeup.has_pidfds, wakeup.was_stopped);
  return wakeup;
}

// A ready pidfd wakes the thread anyway. So the loop reads only if there are none.
void ExitReader::ChooseListener(uint64_t now_ns) {
  using Listener = StreamHandover::Listener;
  const bool is_for_loop = !watched_.has_pidfds();
  handover_.Listen(handover_.reads_in_loop() && is_for_loop ? Listener::kLoop : Listener::kThread,
                   now_ns);
  const bool may_offer = is_ready_ && session_.is_open() && session_.has_ebpf_filter() &&
                         is_for_loop && options_.max_delay_ns == 0;
  if (may_offer && handover_.Offer(now_ns)) delivery_.WakeOwner();
}

// Reads what has come, settles what is certain, delivers it, and repairs what is broken. Only the
// thread handles pidfds and repairs: false if the loop reads, and more has to be done.
bool ExitReader::Round(Reader reader) {
  const bool is_thread = reader == Reader::kThread;
  clock_.Sample();
  uint64_t begin_ns = clock_.Now();
  bool is_empty = session_.Read();
  if (is_thread) {
    if (pidfds_.IsDue(is_empty)) DeliverPidfds();
    collector_.CheckWatches();
  }
  collector_.Settle(session_.SettledUntil(is_empty, begin_ns));
  // What was just confirmed can be reported once the stream has been read again.
  if (is_empty && collector_.NextDeadline() <= clock_.Now()) {
    begin_ns = clock_.Now();
    is_empty = session_.Read();
    collector_.Settle(session_.SettledUntil(is_empty, begin_ns));
  }
  StreamLoss& loss = session_.loss();
  if (loss.Notice(session_.Drops(), clock_.Now())) delivery_.SetGapEnd(clock_.Now());
  // What was read between a drop and its detection is affected by the loss.
  if (loss.is_noticed()) delivery_.Doubt(loss.begin_ns());
  const bool is_settled = is_empty && !collector_.HasUnreported();
  if (is_thread && loss.IsDue(is_settled, begin_ns)) repair_.ReportLoss();
  delivery_.Flush();  // what follows may take a while
  session_.ReadDoorbells();
  if (is_thread) {
    repair_.RepairWhatIsDue(begin_ns);
  } else if (const uint64_t now_ns = clock_.Now();
             loss.is_noticed() || session_.has_failed() || session_.CountsStorm(now_ns, now_ns)) {
    return false;
  }
  if (!loss.is_noticed() && repair_.is_complete()) loss.SetComplete(begin_ns);
  if (is_thread) delivery_.Flush();
  return true;
}

void ExitReader::DeliverPidfds() {
  const bool records_come = session_.RecordsCome();
  for (const PidfdSet::Ready& ready : pidfds_.Take()) {
    collector_.OnPidfd(ready, pidfds_.not_ready_ns(), records_come);
  }
}

// While the stream is being repaired, pidfds do not wait for it.
void ExitReader::ServePidfds(bool has_ready) {
  if (!is_ready_) return;
  if (has_ready) {
    const uint64_t now_ns = clock_.Now();
    delivery_.OnWake(now_ns);
    pidfds_.TakeMeanwhile(now_ns);
    DeliverPidfds();
  }
  collector_.Settle(clock_.Now());
  if (session_.silent_since_ns() != 0) delivery_.Doubt(session_.silent_since_ns());
  delivery_.Flush();
}

// In the owner's thread, which never waits for the reader's thread.
bool ExitReader::TakeStream() {
  handover_.Decline();
  const std::unique_lock<std::mutex> lock(reading_, std::try_to_lock);
  return lock && !epoll_.is_stopping() && handover_.Accept(clock_.Now());
}

// In the owner's thread. False: the reader's thread must take over, and does.
bool ExitReader::ReadInLoop() {
  const std::unique_lock<std::mutex> lock(reading_, std::try_to_lock);
  if (lock && handover_.reads_in_loop()) {
    wakeups_.fetch_add(1, std::memory_order_relaxed);
    delivery_.OnWake(clock_.Now());
    for (int i = 0; i < kReadsInLoop; i++) {
      session_.SetReadable();
      if (!Round(Reader::kLoop)) break;
      if (!session_.ArmDoorbell()) continue;
      if (Deadline() < sleeps_until_ns_) epoll_.Wake();
      return true;
    }
  }
  handover_.Withdraw();
  epoll_.Wake();
  return false;
}

}  // namespace exitwatch
