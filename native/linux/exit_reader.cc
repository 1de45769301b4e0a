#include "linux/exit_reader.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "linux/exit_record.h"
#include "linux/own_children.h"
#include "linux/pidfd.h"
#include "linux/proc_files.h"
#include "linux/second_look.h"
#include "linux/stat_code_trial.h"

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// Groups that may be told of twice: the threads of so many can be on their way at once.
constexpr size_t kEndedGroups = 16 * 1024;

// How long exits are held in a storm, so that they cross together.
constexpr int kStormMs = 1;

// How long a pidfd's word may wait for a stream that does not run dry: events tell more.
constexpr uint64_t kLongestUntoldNs = 100 * kMillisecond;

constexpr int kEventsAtOnce = 4;

// A gap is told when the stream was read empty; at the latest after this time.
constexpr uint64_t kLongestUntoldLossNs = 1000 * kMillisecond;

}  // namespace

ExitReader::ExitReader(const Options& options, std::shared_ptr<Shared> shared,
                       std::function<void()> wake)
    : options_(options),
      shared_(std::move(shared)),
      wake_(std::move(wake)),
      queue_(options.queue_limit),
      watched_({options.guarded, !options.stream.watched_only, options.use != StreamUse::kNone},
               cgroups_, [this] { Signal(); }),
      watched_bitmap_(watched_.set()),
      signals_(cgroups_),
      stream_(options.stream, watched_bitmap_, cgroups_),
      silence_(shared_->canary, options.canary_interval_ns),
      ended_(kEndedGroups) {}

ExitReader::~ExitReader() { Stop(); }

SystemError ExitReader::Start() {
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return {Failure::kSystem, errno, "epoll_create1"};
  signal_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  trace_settled_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bell_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!bell_) return {Failure::kSystem, errno, "epoll_create1"};
  if (!signal_ || !stop_ || !trace_settled_) return {Failure::kSystem, errno, "eventfd"};
  if (const SystemError error = watched_.Open()) return error;
  const int error = thread_.Start("exitwatch", [this] { Run(); });
  if (error != 0) return {Failure::kSystem, error, "pthread_create"};
  return {};
}

void ExitReader::Stop() {
  stopping_ = true;
  if (stop_) eventfd_write(stop_.Get(), 1);
  if (signal_) Signal();
  thread_.Join();
  aggregator_.reset();
  stream_.Close();
  signals_.Close();
  watched_bitmap_.Close();
  watched_.Clear();
  timeliness_.Close();
  epoll_.Reset();
  bell_.Reset();
  signal_.Reset();
  stop_.Reset();
  trace_settled_.Reset();
}

void ExitReader::AwaitTrace(uint64_t timeout_ns) const {
  // It stays readable: any number may ask.
  pollfd settled = {trace_settled_.Get(), POLLIN, 0};
  RetryOnEintr([&] { return poll(&settled, 1, static_cast<int>(timeout_ns / kMillisecond)); });
}

void ExitReader::Signal() { eventfd_write(signal_.Get(), 1); }

void ExitReader::Run() {
  const std::lock_guard<std::mutex> lock(reading_);
  const SystemError error = Arm();
  eventfd_write(trace_settled_.Get(), 1);
  if (error) {
    Fail(error);
    return;
  }
  while (!stopping_ && Wait()) {
    Pass();
    if (failure_) {
      Fail(failure_);
      return;
    }
  }
}

SystemError ExitReader::Arm() {
  own_tgid_ = getpid();
  timeliness_.Open();
  // Tried before there is a stream, which would tell the end of who tries it.
  StatCodeIsStatus();
  witness_.emplace(watched_.pidfds(), clock_);
  aggregator_.emplace(
      *witness_, options_.status_timeout_ns,
      [this](const ThreadGroup& group) {
        // What is told to its watcher only, the stream has yet to tell to everybody.
        const bool is_told_to_all =
            group.cause != ThreadGroup::Cause::kWatched || group.leader_known;
        if (stream_.is_group_aware() && is_told_to_all) ended_.Add(group.Identity());
        OnEnd(group);
      },
      [this](int32_t pid, uint64_t time_ns) {
        const uint64_t watched = watched_.set().InodeAt(pid, time_ns);
        return watched != 0 ? watched : known_.InodeAt(pid, clock_.TickOf(time_ns));
      });

  aggregator_->TellsAll(!options_.stream.watched_only);

  if (const SystemError error = AddToEpoll(signal_.Get(), kSignalTag, EPOLLIN)) return error;
  if (const SystemError error = AddToEpoll(watched_.pidfds().fd(), kPidfdsTag, EPOLLIN)) {
    return error;
  }
  const SystemError trace_error = OpenTrace();
  eventfd_write(trace_settled_.Get(), 1);
  if (trace_error) return trace_error;
  SystemError stream_error;
  if (options_.use != StreamUse::kNone) stream_error = OpenStream();
  if (stream_error && options_.use == StreamUse::kRequired) return stream_error;
  if (!OpenPidfd(own_tgid_)) return {Failure::kNoPidfd, errno, "pidfd_open"};
  if (!ProcShowsOurPids()) return {Failure::kNoProc, 0, "readlink"};
  armed_ns_ = no_drops_ns_ = wait_begin_ns_ = wake_ns_ = clock_.Now();
  if (has_stream_) stream_error = ProveThatEventsArrive();
  if (stopping_) return {Failure::kSystem, ECANCELED, "poll"};
  if (stream_error && options_.use == StreamUse::kRequired) return stream_error;
  if (stream_error || !has_stream_) CloseStream(stream_error);
  watched_.Arm();
  if (!options_.stream.watched_only) ReadProcesses();

  std::vector<Record> told = std::exchange(staged_, {});
  StageSource(Record::kReady, stream_error);
  staged_.insert(staged_.end(), told.begin(), told.end());
  is_ready_ = true;
  Pass();
  return failure_;
}

SystemError ExitReader::OpenTrace() {
  if (!options_.traced) return {};
  signals_.Open(shared_->types, options_.stream.watched_only ? &watched_bitmap_ : nullptr, clock_,
                options_.spoil);
  // Once for each time that the kernel asks for us: what else there is can wait.
  return signals_.is_open() ? AddToEpoll(signals_.fd(), kTraceTag, EPOLLIN | EPOLLET)
                            : SystemError{};
}

SystemError ExitReader::AddToEpoll(int fd, uint64_t tag, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll_.Get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return {Failure::kSystem, errno, "epoll_ctl"};
}

SystemError ExitReader::AddSocketToEpoll() {
  listener_ = Listener::kThread;
  reads_in_loop_ = false;
  return AddToEpoll(stream_.fd(), kSocketTag, EPOLLIN);
}

// When there is something to do without being told.
uint64_t ExitReader::Deadline() const {
  return std::min({aggregator_->NextDeadline(), recheck_ns_, retry_ns_,
                   has_stream_ ? silence_.Deadline() : kNever,
                   ready_.empty() ? kNever : ready_ns_ + kLongestUntoldNs,
                   loss_begin_ns_ == 0 ? kNever : loss_noticed_ns_ + kLongestUntoldLossNs});
}

// Sleeps until there is something to do. False where that cannot be known any more.
bool ExitReader::Wait() {
  const uint64_t deadline_ns = sleeps_until_ns_ = Deadline();
  wait_begin_ns_ = clock_.Now();
  int timeout_ms = -1;
  if (deadline_ns != kNever) {
    timeout_ms = deadline_ns <= wait_begin_ns_
                     ? 0
                     : static_cast<int>((deadline_ns - wait_begin_ns_) / kMillisecond) + 1;
  }
  rate_.Add(std::exchange(read_, 0), wait_begin_ns_);
  if (rate_.IsStorm(wait_begin_ns_)) {
    // Whatever comes waits for us, and wakes nobody.
    if (timeout_ms != 0) timeout_ms = kStormMs;
    Listen(Listener::kNobody);
  } else {
    // A pidfd wakes the thread anyway.
    const bool stays_in_loop = reads_in_loop_ && !watched_.has_guards();
    Listen(stays_in_loop ? Listener::kLoop : Listener::kThread);
    OfferToLoop();
    if (timeout_ms != 0 && !stream_.ArmBell()) timeout_ms = 0;
  }

  const bool may_be_woken_by_pidfd = watched_.has_guards() || aggregator_->HasGroups();
  if (may_be_woken_by_pidfd) timeliness_.Begin();
  epoll_event events[kEventsAtOnce];
  int count = Sleep(events, timeout_ms);
  // A process that was stopped (SIGSTOP) and continued gets EINTR here, although the thread takes
  // no signals: what became ready meanwhile may have been so for long.
  const bool was_stopped = count < 0 && errno == EINTR;
  if (was_stopped) count = epoll_wait(epoll_.Get(), events, kEventsAtOnce, 0);
  if (count < 0 && errno != EINTR) {
    Fail({Failure::kSystem, errno, "epoll_wait"});
    return false;
  }
  if (timeout_ms != 0) wakeups_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t previous_wake_ns = std::exchange(wake_ns_, clock_.Now());
  bool has_ready = false;
  for (int i = 0; i < count; i++) {
    has_ready |= events[i].data.u64 == kPidfdsTag;
    has_events_ |= events[i].data.u64 == kSocketTag;
    // The bell has rung, and the loop was not there.
    if (events[i].data.u64 == kRingTag) reads_in_loop_ = false;
    if (events[i].data.u64 == kSignalTag) {
      eventfd_t value;
      eventfd_read(signal_.Get(), &value);
    }
  }
  if (!more_ready_ && has_ready) {
    // What is ready now was not when we last took all that was; and where we were woken by it, and
    // ran at once, not until just now.
    const bool was_asleep = wake_ns_ - wait_begin_ns_ >= kMillisecond;
    not_ready_ns_ = was_asleep ? wait_begin_ns_ : previous_wake_ns - kMillisecond;
    const std::optional<uint64_t> late_ns =
        may_be_woken_by_pidfd ? timeliness_.LateNs() : std::nullopt;
    if (was_asleep && !was_stopped && late_ns) {
      not_ready_ns_ = std::max(wait_begin_ns_, wake_ns_ - kMillisecond - *late_ns);
    }
  }
  more_ready_ = false;
  if (has_ready) TakeReady();
  return true;
}

void ExitReader::TakeReady() {
  if (ready_.empty()) {
    ready_ns_ = wake_ns_;
    alive_ns_ = not_ready_ns_;
  }
  more_ready_ = watched_.pidfds().Take(ready_);
  ready_written_ = stream_.Written();
}

int ExitReader::Sleep(epoll_event* events, int timeout_ms) {
  reading_.unlock();
  const int count = epoll_wait(epoll_.Get(), events, kEventsAtOnce, timeout_ms);
  const int error = errno;
  reading_.lock();
  errno = error;
  return count;
}

void ExitReader::Pass() {
  clock_.Sample();
  uint64_t begin_ns = clock_.Now();
  bool empty = Drain();
  TellReady(stream_.is_group_aware() ? stream_.HasRead(ready_written_) : empty);
  watched_.Check(*witness_, *aggregator_);
  const auto settle = [&] { aggregator_->Settle(SettledUntil(empty, begin_ns)); };
  settle();
  // What was confirmed just now is told when the stream was read once more.
  if (empty && aggregator_->NextDeadline() <= clock_.Now()) {
    begin_ns = clock_.Now();
    empty = Drain();
    settle();
  }
  NoticeDrops();
  DoubtStaged();
  const bool is_settled = empty && !aggregator_->HasUntold();
  if (loss_begin_ns_ != 0 && (is_settled || begin_ns > loss_noticed_ns_ + kLongestUntoldLossNs)) {
    TellDrops();
  }
  Flush();  // what follows takes its time
  // With the group-aware filter events are no more than bells and canaries. The loop that reads
  // them may be busy, and a canary that nobody has looked for is not lost.
  const bool is_due = has_stream_ && clock_.Now() >= silence_.Deadline();
  if (stream_.is_group_aware() && (std::exchange(has_events_, false) || is_due)) DrainEvents();
  NoticeFailure();
  if (!has_stream_ && begin_ns >= retry_ns_) RetryStream();
  if (begin_ns >= recheck_ns_) RecheckWatches();
  if (loss_begin_ns_ == 0 && recheck_ns_ == kNever) no_drops_ns_ = begin_ns;
  Flush();
}

// Reads what tells the ends of processes. True when nothing is left to read.
bool ExitReader::Drain() {
  if (!stream_.is_group_aware()) return DrainEvents();
  const ConnectorStream::Read read =
      stream_.ReadRecords([this](const GroupRecord& record) { OnRecord(record); });
  return read != ConnectorStream::Read::kMore;
}

bool ExitReader::DrainEvents() {
  uint64_t rejected = 0;
  const ConnectorStream::Read read = stream_.ReadEvents(
      [this](const ProcEvent& event) { OnEvent(event); }, &rejected, &stream_failure_);
  if (rejected != 0) rejected_.fetch_add(rejected, std::memory_order_relaxed);
  return read != ConnectorStream::Read::kMore;
}

// Tells the aggregator of pidfds that are ready, once all that came before was read.
void ExitReader::TellReady(bool has_read) {
  if (ready_.empty() || (!has_read && wake_ns_ < ready_ns_ + kLongestUntoldNs)) return;
  const bool records_come = RecordsCome();
  for (const PidfdSet::Ready& ready : std::exchange(ready_, {})) {
    watched_.OnReady(ready, alive_ns_, records_come, *aggregator_);
  }
}

// Whether a process that ends is certain to write its record, as far as we know.
bool ExitReader::RecordsCome() const {
  return has_stream_ && stream_.is_group_aware() && !stream_failure_ && silent_since_ns_ == 0;
}

void ExitReader::OnEvent(const ProcEvent& event) {
  read_++;
  silence_.OnEvent(clock_.Now(), event.timestamp_ns);
  if (!stream_.is_group_aware()) last_event_ns_ = std::max(last_event_ns_, event.timestamp_ns);
  if (event.what == kProcEventFork) {
    if (!options_.stream.watched_only) known_.OnFork(event);
    if (!stream_.is_group_aware()) aggregator_->OnFork(event);
    return;
  }
  if (event.tgid == own_tgid_) {
    silence_.OnThreadExit(event.pid);
    return;
  }
  if (stream_.is_group_aware()) return;  // a bell
  if (options_.stream.watched_only && !watched_.set().Contains(event.tgid)) return;
  if (event.what == kProcEventExit) aggregator_->OnExit(event);
  if (event.what == kProcEventExec) aggregator_->OnExec(event);
  if (event.what == kProcEventCoredump) aggregator_->OnCoredump(event);
}

// What a dying task wrote of its group.
void ExitReader::OnRecord(const GroupRecord& record) {
  read_++;
  silence_.OnEvent(clock_.Now(), record.time_ns);
  last_event_ns_ = std::max(last_event_ns_, record.time_ns);
  if (options_.stream.watched_only && !watched_.set().Contains(record.pid)) return;
  const bool has_status = (record.flags & GroupRecord::kStatusKnown) != 0;
  if ((record.flags & GroupRecord::kDead) == 0) {
    ProcEvent event;
    event.what = kProcEventExit;
    event.tgid = record.pid;
    event.timestamp_ns = record.time_ns;
    event.exit_code = record.status;
    if (ended_.Contains({record.pid, 0, record.inode, record.group, 0})) return;
    if (!aggregator_->OnTracedExit(event, has_status)) unheld_++;
    return;
  }
  const ThreadGroup group = MakeDeadGroup(record, clock_);
  GroupIdentity identity = group.Identity();
  identity.group = record.group;
  if (ended_.Contains(identity)) return;
  if ((record.flags & GroupRecord::kMayBeRepeated) != 0) ended_.Add(identity);
  aggregator_->Supersede(identity);
  OnEnd(group);
}

void ExitReader::ReadProcesses() {
  known_.ReadAll(
      *witness_, stopping_,
      [this](const GroupIdentity& identity, ProcessWitness::Handle handle) {
        aggregator_->Adopt(identity, handle, clock_.Now(), ThreadGroup::Cause::kFound);
      },
      [this](const GroupIdentity& identity, uint64_t read_ns) {
        if (aggregator_->IsEnding(identity.pid)) return;
        LookAgain(identity, std::max(told_ns_, read_ns), *witness_, *aggregator_);
      });
}

void ExitReader::OnEnd(const ThreadGroup& group) {
  const uint64_t end_tick = clock_.TickOf(group.ended_ns);
  std::optional<ProcessEntry> process = known_.Take(group.pid, end_tick);
  if (OwnChildren::Contains(group.Identity(), group.ended_ns)) return;
  const std::optional<Watch> watch = watched_.Take(group.Identity(), group.ended_ns);
  if (watch) process = watch->process;
  if (options_.stream.watched_only && !watch) return;

  // Kernel threads end with 0; what has another status is a program that the kernel started.
  const bool is_kernel_thread =
      group.has_stat ? group.stat.IsKernelThread() : process && process->is_kernel_thread;
  if (is_kernel_thread && group.Status().value_or(0) == 0) return;
  if (process && process->start_ticks == 0) process.reset();

  const bool is_zombie = group.handle != ProcessWitness::kNoHandle &&
                         witness_->Look(group.handle) == ProcessWitness::Life::kDead;
  const uint64_t unknown_ns =
      options_.stream.watched_only ? 0 : known_.UnknownSince(group.ended_ns);
  const ReadingTimes times = {clock_,      armed_ns_, unknown_ns,
                              gap_end_ns_, wake_ns_,  options_.stream.watched_only};
  staged_.push_back(MakeExitRecord(group, process, watch, is_zombie, times));
  if (stream_.is_group_aware() && group.handle == ProcessWitness::kNoHandle) return;
  Record& record = staged_.back();
  if (group.handle != ProcessWitness::kNoHandle) {
    if (const uint64_t cgroup = PidfdCgroup(group.handle)) {
      record.cgroup = static_cast<double>(cgroup);
    }
  }
  // It may be gone when JavaScript asks for it.
  cgroups_.Look(static_cast<uint64_t>(record.cgroup));
}

BpfRefusal ExitReader::filter_refusal() {
  const std::lock_guard<std::mutex> lock(filter_mutex_);
  return filter_refusal_;
}

std::optional<uint64_t> ExitReader::NsSinceProof() const {
  const uint64_t proof_ns = silence_.proof_ns();
  if (proof_ns == 0 || !has_stream_) return {};
  return clock_.Now() - std::min(clock_.Now(), proof_ns);
}

void ExitReader::Flush() {
  // The signals that led to an end are there before it.
  const bool is_wanted = signals_.Collect(clock_, staged_);
  if (staged_.empty() && !is_wanted) return;
  queue_.Push(staged_);
  staged_.clear();
  wake_();
}

void ExitReader::Fail(const SystemError& error) {
  Record failed;
  failed.kind = Record::kFailed;
  failed.uid = static_cast<uint32_t>(error.code);
  failed.status = error.number;
  std::strncpy(failed.name, error.syscall, sizeof(failed.name) - 1);
  staged_.push_back(failed);
  Flush();
}

}  // namespace exitwatch
