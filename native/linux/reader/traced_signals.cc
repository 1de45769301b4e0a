#include "linux/reader/traced_signals.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>
#include <variant>

#include "linux/system/own_children.h"

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// Space for some 1,700 signals that have not been asked for yet.
constexpr size_t kRingBytes = 512 * 1024;

// Some 19 MB.
constexpr size_t kQueueLimit = 64 * 1024;

// JavaScript keeps only the latest signals of each process. Wake it when this many wait.
constexpr size_t kManySignals = 4096;

}  // namespace

TracedSignals::TracedSignals(CgroupPaths& cgroups, bool tells_command_lines)
    : cgroups_(cgroups),
      tells_command_lines_(tells_command_lines),
      trace_(cgroups),
      queue_(kQueueLimit) {}

void TracedSignals::Open(KernelTypes& types, WatchedBitmap* watched, const KernelClock& clock,
                         const std::string& spoil) {
  SignalTrace trace(cgroups_, command_lines());
  BpfRefusal refusal = trace.Open(types, kRingBytes, watched, spoil);
  std::shared_ptr<const TraceTrial> trial;
  if (!refusal) {
    const auto visit = [&](const SignalRecord& record) { OnRecord(record, clock); };
    trial = TryTrace(trace, watched, clock, visit);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  refusal_ = std::move(refusal);
  if (refusal_) return;
  trace_ = std::move(trace);
  trial_ = std::move(trial);
  lost_ = trace_.Lost() + unheld_;
  tells_others_ = watched != nullptr;
  trace_.SetWakeup(Wakeup());
  complete_ns_ = collected_ns_ = clock.Now();
}

SystemError TracedSignals::Begin() {
  settled_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return settled_ ? SystemError{} : SystemError{Failure::kSystem, errno, "eventfd"};
}

void TracedSignals::Settle() { eventfd_write(settled_.Get(), 1); }

void TracedSignals::Await(uint64_t timeout_ns) const {
  // It stays readable, so any number of callers may wait.
  pollfd settled = {settled_.Get(), POLLIN, 0};
  RetryOnEintr([&] { return poll(&settled, 1, static_cast<int>(timeout_ns / kMillisecond)); });
}

void TracedSignals::Close() {
  settled_.Reset();
  const std::lock_guard<std::mutex> lock(mutex_);
  trace_ = SignalTrace(cgroups_);
}

BpfRefusal TracedSignals::refusal() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refusal_;
}

std::shared_ptr<const TraceTrial> TracedSignals::trial() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return trial_;
}

void TracedSignals::Listen(bool listens) {
  const std::lock_guard<std::mutex> lock(mutex_);
  listens_ = listens;
  if (trace_) trace_.SetWakeup(Wakeup());
}

SignalWakeup TracedSignals::Wakeup() const {
  if (listens_) return SignalWakeup::kAll;
  return tells_others_ ? SignalWakeup::kOthers : SignalWakeup::kNone;
}

bool TracedSignals::Collect(const KernelClock& clock, std::vector<Record>& records) {
  if (!trace_) return false;
  bool is_new = false;
  bool is_pressing = false;
  const bool is_whole = trace_.Read([&](const SignalRecord& record) {
    is_new = true;
    is_pressing |= tells_others_ && record.sender_pid != record.pid;
    OnRecord(record, clock);
  });
  if (!is_whole) unheld_++;
  const uint64_t now_ns = clock.Now();
  const uint64_t lost = trace_.Lost() + unheld_;
  if (lost != lost_) {
    GapRecord gap;
    gap.reason = GapReason::kTraceBuffer;
    gap.from_ns = static_cast<double>(collected_ns_);
    gap.to_ns = static_cast<double>(now_ns);
    gap.clock_ms = static_cast<double>(clock.realtime_offset_ns()) / 1e6;
    gap.lost = static_cast<double>(lost - std::exchange(lost_, lost));
    // Exits that the gap concerns come after it, but nothing comes before kReady.
    const auto is_begin = [](const Record& record) {
      const auto* source = std::get_if<SourceRecord>(&record);
      return source != nullptr && source->kind == RecordKind::kReady;
    };
    const auto first = std::find_if(records.begin(), records.end(), is_begin);
    records.insert(first == records.end() ? records.begin() : first + 1, gap);
    complete_ns_ = now_ns;
  }
  collected_ns_ = now_ns;
  for (Record& record : records) {
    auto* exit = std::get_if<ExitRecord>(&record);
    if (exit == nullptr) continue;
    const auto complete_ns = static_cast<double>(complete_ns_);
    if (exit->from_ns >= complete_ns) exit->flags |= ExitRecord::kTraced;
    exit->traced_from_ns = std::max(exit->traced_from_ns, complete_ns);
    const bool is_since_start = (exit->flags & ExitRecord::kStartKnown) != 0 &&
                                exit->started_ms - exit->clock_ms >= exit->traced_from_ns / 1e6;
    if (is_since_start) exit->traced_from_ns = 0;
  }
  return is_new && (listens_ || is_pressing || queue_.Depth() >= kManySignals);
}

void TracedSignals::OnRecord(const SignalRecord& record, const KernelClock& clock) {
  SignalRecord signal = record;
  victims_.OnRecord(&signal);
  signal = ForJavaScript(signal, clock);
  signal.memory = 0;
  if ((signal.flags & SignalRecord::kCommandLine) != 0) {
    signal.memory =
        command_lines_.LatestOf(CommandLines::Of::kSender, record.sender_pid, record.sender_start);
  }
  if (OwnChildren::Contains({signal.pid, signal.start_ns, signal.inode, 0, 0}, signal.time_ns))
    return;
  if (!queue_.Push(signal)) unheld_++;
}

}  // namespace exitwatch
