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
#include "linux/pidfd.h"
#include "linux/proc_files.h"

namespace exitwatch {

namespace {

// Held handles carry their pid; these are beyond any.
constexpr uint64_t kSocketTag = 1ull << 32;
constexpr uint64_t kSignalTag = 2ull << 32;

constexpr uint64_t kMillisecond = 1'000'000;
constexpr int kCanaryMs = 1000;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// Groups that may be told of twice: the threads of so many can be on their way at once.
constexpr size_t kEndedGroups = 16 * 1024;

// How long exits are held in a storm, so that they cross together.
constexpr int kStormMs = 1;

// How often a stream that has gone silent is subscribed to anew.
constexpr int kResubscriptions = 3;

// Held handles to hear of at once.
constexpr int kReadyAtOnce = 64;

// Watches that could not be looked at after a gap are looked at again.
constexpr uint64_t kRecheckNs = 100 * kMillisecond;

// Timestamps are taken before queueing, so that across CPUs the stream is a little out of order:
// 0.3 ms at worst on 6.18.
constexpr uint64_t kDisorderNs = kMillisecond;

// A gap is told when the stream was read empty; at the latest after this time.
constexpr uint64_t kLongestUntoldLossNs = 1000 * kMillisecond;

}  // namespace

ExitReader::ExitReader(const Options& options, std::shared_ptr<Shared> shared,
                       std::function<void()> wake)
    : options_(options),
      shared_(std::move(shared)),
      wake_(std::move(wake)),
      queue_(options.queue_limit),
      watched_([this] { Signal(); }),
      stream_(options.stream, watched_.set()),
      silence_(shared_->canary, options.canary_interval_ns),
      ended_(kEndedGroups) {}

ExitReader::~ExitReader() { Stop(); }

SystemError ExitReader::Start() {
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return {Failure::kSystem, errno, "epoll_create1"};
  signal_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!signal_ || !stop_) return {Failure::kSystem, errno, "eventfd"};
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
  watched_.Clear();
  epoll_.Reset();
  signal_.Reset();
  stop_.Reset();
}

void ExitReader::Signal() { eventfd_write(signal_.Get(), 1); }

void ExitReader::Run() {
  if (const SystemError error = Arm()) {
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
  witness_.emplace(epoll_.Get(), clock_);
  aggregator_.emplace(
      *witness_,
      [this](const ThreadGroup& group) {
        if (stream_.is_group_aware()) ended_.Add(group.Identity());
        OnEnd(group);
      },
      [this](int32_t pid, uint64_t time_ns) {
        const uint64_t watched = watched_.set().InodeAt(pid, time_ns);
        return watched != 0 ? watched : known_.InodeAt(pid, clock_.TickOf(time_ns));
      });

  if (const SystemError error = Subscribe()) return error;
  if (!OpenPidfd(own_tgid_)) return {Failure::kNoPidfd, errno, "pidfd_open"};
  if (!ProcShowsOurPids()) return {Failure::kNoProc, 0, "readlink"};

  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kSignalTag;
  if (epoll_ctl(epoll_.Get(), EPOLL_CTL_ADD, signal_.Get(), &event) != 0) {
    return {Failure::kSystem, errno, "epoll_ctl"};
  }
  armed_ns_ = no_drops_ns_ = wait_begin_ns_ = wake_ns_ = not_ready_ns_ = clock_.Now();
  if (const SystemError error = ProveThatEventsArrive()) return error;
  watched_.Arm();
  if (!options_.stream.watched_only) ReadProcesses();

  Record ready;
  ready.kind = Record::kReady;
  ready.count = static_cast<double>(stream_.buffer_bytes());
  staged_.insert(staged_.begin(), ready);
  Pass();
  return failure_;
}

// Opens the stream; or its socket anew, in place of the one before.
SystemError ExitReader::Subscribe() {
  const SystemError error =
      stream_.fd() < 0 ? stream_.Open(shared_->types, stop_.Get()) : stream_.Subscribe(stop_.Get());
  if (error) return error;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kSocketTag;
  listens_to_socket_ = true;
  if (epoll_ctl(epoll_.Get(), EPOLL_CTL_ADD, stream_.fd(), &event) == 0) return {};
  return {Failure::kSystem, errno, "epoll_ctl"};
}

// A thread of our own ends, and its exit must come back through the stream.
SystemError ExitReader::ProveThatEventsArrive() {
  if (const SystemError error = silence_.Begin(clock_.Now())) return error;
  const uint64_t deadline_ns = clock_.Now() + kCanaryMs * kMillisecond;
  for (;;) {
    Drain();
    if (failure_) return failure_;
    if (silence_.IsProven()) return {};
    const uint64_t now_ns = clock_.Now();
    if (now_ns >= deadline_ns) return {Failure::kSilent, 0, "recvmsg"};
    pollfd waiting[] = {{stream_.fd(), POLLIN, 0}, {stop_.Get(), POLLIN, 0}};
    poll(waiting, 2, static_cast<int>((deadline_ns - now_ns) / kMillisecond) + 1);
    if (stopping_) return {Failure::kSystem, ECANCELED, "poll"};
  }
}

// Sleeps until there is something to do. False where that cannot be known any more.
bool ExitReader::Wait() {
  const uint64_t deadline_ns =
      std::min({aggregator_->NextDeadline(), recheck_ns_, silence_.Deadline()});
  wait_begin_ns_ = clock_.Now();
  int timeout_ms = -1;
  if (deadline_ns != kNever) {
    timeout_ms = deadline_ns <= wait_begin_ns_
                     ? 0
                     : static_cast<int>((deadline_ns - wait_begin_ns_) / kMillisecond) + 1;
  }
  if (loss_begin_ns_ != 0) timeout_ms = 0;
  rate_.Add(std::exchange(read_, 0), wait_begin_ns_);
  if (rate_.IsStorm(wait_begin_ns_)) {
    // Whatever comes waits for us, and wakes nobody.
    if (timeout_ms != 0) timeout_ms = kStormMs;
    ListenTo(false);
  } else {
    ListenTo(true);
    if (timeout_ms != 0 && !stream_.ArmBell()) timeout_ms = 0;
  }

  epoll_event events[kReadyAtOnce];
  int count = epoll_wait(epoll_.Get(), events, kReadyAtOnce, timeout_ms);
  const bool interrupted = count < 0 && errno == EINTR;
  if (count < 0 && !interrupted) {
    Fail({Failure::kSystem, errno, "epoll_wait"});
    return false;
  }
  // A process that was stopped (SIGSTOP) and continued gets EINTR here, although the thread takes
  // no signals: what became ready meanwhile may have been so for long.
  const uint64_t previous_wake_ns = std::exchange(wake_ns_, clock_.Now());
  if (interrupted) {
    not_ready_ns_ = wait_begin_ns_;
    count = epoll_wait(epoll_.Get(), events, kReadyAtOnce, 0);
    more_ready_ = count == kReadyAtOnce;
  } else if (std::exchange(more_ready_, count == kReadyAtOnce)) {
    // The rest of what was ready at the last call.
  } else if (wake_ns_ - wait_begin_ns_ < kMillisecond) {
    not_ready_ns_ = previous_wake_ns - kMillisecond;
  } else {
    not_ready_ns_ = wake_ns_ - kMillisecond;
  }
  if (timeout_ms != 0) wakeups_.fetch_add(1, std::memory_order_relaxed);

  for (int i = 0; i < count; i++) {
    const uint64_t tag = events[i].data.u64;
    if (tag < kSocketTag) ready_.push_back(static_cast<int32_t>(tag));
    if (tag == kSignalTag) {
      eventfd_t value;
      eventfd_read(signal_.Get(), &value);
    }
  }
  return true;
}

// With the group-aware filter an unarmed bell is enough.
void ExitReader::ListenTo(bool socket) {
  if (stream_.is_group_aware() || listens_to_socket_ == socket) return;
  epoll_event event = {};
  event.events = socket ? uint32_t{EPOLLIN} : 0;
  event.data.u64 = kSocketTag;
  if (epoll_ctl(epoll_.Get(), EPOLL_CTL_MOD, stream_.fd(), &event) == 0) {
    listens_to_socket_ = socket;
  }
}

void ExitReader::Pass() {
  clock_.Sample();
  uint64_t begin_ns = clock_.Now();
  bool empty = Drain();
  for (const int32_t pid : std::exchange(ready_, {}))
    aggregator_->OnHandleReady(pid, not_ready_ns_);
  watched_.Check(*witness_, *aggregator_, !options_.stream.watched_only);
  const auto settle = [&] {
    aggregator_->Settle(empty ? begin_ns : last_event_ns_ - std::min(last_event_ns_, kDisorderNs));
  };
  settle();
  // What was confirmed just now is told when the stream was read once more.
  if (empty && aggregator_->NextDeadline() <= clock_.Now()) {
    begin_ns = clock_.Now();
    empty = Drain();
    settle();
  }
  NoticeDrops();
  DoubtStaged();
  if (loss_begin_ns_ != 0 && (empty || begin_ns > loss_begin_ns_ + kLongestUntoldLossNs)) {
    TellDrops();
  }
  NoticeSilence();
  if (begin_ns >= recheck_ns_) RecheckWatches();
  if (loss_begin_ns_ == 0 && recheck_ns_ == kNever) no_drops_ns_ = begin_ns;
  Flush();
}

// True when nothing is left to read.
bool ExitReader::Drain() {
  uint64_t rejected = 0;
  const ConnectorStream::Read read = stream_.ReadSome(
      [this](const ProcEvent& event) { OnEvent(event); },
      [this](const GroupRecord& record) { OnRecord(record); }, &rejected, &failure_);
  if (rejected != 0) rejected_.fetch_add(rejected, std::memory_order_relaxed);
  return read != ConnectorStream::Read::kMore;
}

void ExitReader::OnEvent(const ProcEvent& event) {
  read_++;
  silence_.OnEvent(clock_.Now());
  if (!stream_.is_group_aware()) last_event_ns_ = std::max(last_event_ns_, event.timestamp_ns);
  if (event.what == kProcEventFork) {
    if (!options_.stream.watched_only) known_.OnFork(event);
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
  silence_.OnEvent(clock_.Now());
  last_event_ns_ = std::max(last_event_ns_, record.time_ns);
  if (options_.stream.watched_only && !watched_.set().Contains(record.pid)) return;
  const bool has_status = (record.flags & GroupRecord::kStatusKnown) != 0;
  if ((record.flags & GroupRecord::kDead) == 0) {
    ProcEvent event;
    event.what = kProcEventExit;
    event.tgid = record.pid;
    event.timestamp_ns = record.time_ns;
    event.exit_code = record.status;
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
  known_.ReadAll(*witness_, stopping_,
                 [this](const GroupIdentity& identity, ProcessWitness::Handle handle) {
                   aggregator_->Adopt(identity, handle, clock_.Now(), ThreadGroup::Cause::kFound);
                 });
}

// Compares the kernel's count of dropped messages with what was told of it.
void ExitReader::NoticeDrops() {
  if (Drops() == drops_) return;
  if (loss_begin_ns_ == 0) loss_begin_ns_ = no_drops_ns_;
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

// Subscribes anew to a stream that has gone silent, and tells that nobody knows what ended
// meanwhile. Where only a descriptor, a thread or memory is lacking, that is tried again later.
void ExitReader::NoticeSilence() {
  if (!silence_.IsSilent(clock_.Now(), loss_begin_ns_ != 0)) return;
  // Proofs that come on the way are of the next subscription.
  if (silent_since_ns_ == 0) silent_since_ns_ = silence_.proof_ns();
  SystemError error;
  for (int i = 0; i < kResubscriptions; i++) {
    error = Subscribe();
    if (!error) error = ProveThatEventsArrive();
    if (error.code != Failure::kSilent) break;
  }
  if (!error) {
    Record gap;
    gap.flags = Record::kSilenced;
    gap.from_ns = static_cast<double>(silent_since_ns_);
    RepairAfterGap(gap, std::exchange(silent_since_ns_, 0));
  } else if (error.IsShortage()) {
    silence_.Postpone(clock_.Now());
  } else {
    failure_ = error;
  }
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
  recheck_ns_ = ended.is_complete ? kNever : clock_.Now() + kRecheckNs;
  return ended.count;
}

void ExitReader::OnEnd(const ThreadGroup& group) {
  const uint64_t end_tick = clock_.TickOf(group.ended_ns);
  std::optional<ProcessEntry> process = known_.Take(group.pid, end_tick);
  const std::optional<Watch> watch = watched_.set().Take(group.Identity(), group.ended_ns);
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
  const ReadingTimes times = {clock_, armed_ns_, unknown_ns, gap_end_ns_, wake_ns_};
  staged_.push_back(MakeExitRecord(group, process, watch, is_zombie, times));
}

std::optional<uint64_t> ExitReader::NsSinceProof() const {
  const uint64_t proof_ns = silence_.proof_ns();
  if (proof_ns == 0) return {};
  return clock_.Now() - std::min(clock_.Now(), proof_ns);
}

void ExitReader::Flush() {
  if (staged_.empty()) return;
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
