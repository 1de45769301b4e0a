#include "linux/reader/exit_collector.h"

#include <algorithm>
#include <optional>

#include "linux/reader/exit_record.h"
#include "linux/reader/recheck.h"
#include "linux/system/own_children.h"

namespace exitwatch {

namespace {

// Groups that may be reported twice: the threads of this many may be on their way at once.
constexpr size_t kEndedGroups = 16 * 1024;

}  // namespace

ExitCollector::ExitCollector(const Options& options, const KernelClock& clock,
                             WatchedProcesses& watched, ExitDelivery& delivery)
    : options_(options),
      clock_(clock),
      watched_(watched),
      delivery_(delivery),
      witness_(watched.pidfds(), clock),
      aggregator_(witness_, options.status_timeout_ns,
                  [this](const ThreadGroup& group) { OnGroupEnd(group); }),
      attribution_(!options.watched_only, options.status_timeout_ns, witness_, watched.set(),
                   aggregator_,
                   [this](int32_t pid, uint64_t time_ns) {
                     return known_.FindAt(pid, clock_.TickOf(time_ns));
                   }),
      ended_(kEndedGroups) {
  aggregator_.ReportsAll(!options.watched_only);
}

void ExitCollector::SetStream(StreamKind stream) {
  stream_ = stream;
  watched_.SetStream(stream);
  aggregator_.SetStream(stream);
}

bool ExitCollector::IsWanted(int32_t pid) {
  return !options_.watched_only || watched_.set().Contains(pid);
}

void ExitCollector::OnEvent(const ProcEvent& event) {
  const bool is_doorbell = stream_ == StreamKind::kGroups;
  if (event.what == kProcEventFork) {
    if (!options_.watched_only) known_.OnFork(event);
    if (!is_doorbell) aggregator_.OnFork(event);
    return;
  }
  if (is_doorbell || !IsWanted(event.tgid)) return;
  if (event.what == kProcEventExit) attribution_.OnExit(event);
  if (event.what == kProcEventExec) aggregator_.OnExec(event);
  if (event.what == kProcEventCoredump) aggregator_.OnCoredump(event);
}

void ExitCollector::OnReport(const GroupReport& report) {
  const GroupRecord& record = report.group;
  if (!IsWanted(record.pid)) return;
  const bool has_status = (record.flags & GroupRecord::kStatusKnown) != 0;
  if ((record.flags & GroupRecord::kDead) == 0) {
    ProcEvent event;
    event.what = kProcEventExit;
    event.tgid = record.pid;
    event.timestamp_ns = record.time_ns;
    event.exit_code = record.status;
    if (ended_.Contains({record.pid, 0, record.inode, record.group, 0})) return;
    if (!aggregator_.OnPtracedExit(event, has_status)) unheld_++;
    return;
  }
  ThreadGroup group = MakeDeadGroup(report, clock_);
  if (options_.command_lines != nullptr) {
    group.command_line =
        options_.command_lines->LatestOf(CommandLines::Of::kExit, record.pid, record.start_ns);
  }
  GroupIdentity identity = group.Identity();
  identity.group = record.group;
  if (ended_.Contains(identity)) return;
  if ((record.flags & GroupRecord::kMayBeRepeated) != 0) ended_.Add(identity);
  aggregator_.Supersede(identity);
  Deliver(group);
}

void ExitCollector::ReadProcesses(const std::atomic<bool>& stop, uint64_t reported_ns) {
  known_.ReadAll(
      witness_, stop,
      [this](const GroupIdentity& identity, ProcessWitness::Handle handle) {
        aggregator_.Adopt(identity, handle, clock_.Now(), ThreadGroup::Cause::kFound);
      },
      [this, reported_ns](const GroupIdentity& identity, uint64_t read_ns) {
        if (aggregator_.IsEnding(identity.pid)) return;
        Recheck(identity, std::max(reported_ns, read_ns), witness_, aggregator_);
      });
}

void ExitCollector::OnGroupEnd(const ThreadGroup& group) {
  // If only the watcher gets this exit, the stream will still report it to everyone.
  const bool is_for_all = group.cause != ThreadGroup::Cause::kWatched || group.events.leader_known;
  if (stream_ == StreamKind::kGroups && is_for_all) ended_.Add(group.Identity());
  Deliver(group);
}

void ExitCollector::Deliver(const ThreadGroup& group) {
  const bool may_be_known = group.certainty != EventOwner::Certainty::kUnobserved;
  std::optional<ProcessEntry> process;
  if (may_be_known) process = known_.Take(group.pid, clock_.TickOf(group.times.ended_ns));
  if (OwnChildren::Contains(group.Identity(), group.times.ended_ns)) return;
  std::optional<Watch> watch;
  if (may_be_known) watch = watched_.Take(group.Identity(), group.times.ended_ns);
  if (watch) process = watch->process;
  if (options_.watched_only && !watch) return;

  // Kernel threads exit with 0. Any other status is that of a program that the kernel started.
  const bool is_kernel_thread = group.answers.has_stat ? group.answers.stat.IsKernelThread()
                                                       : process && process->is_kernel_thread;
  if (is_kernel_thread && group.Status().value_or(0) == 0) return;
  if (process && process->start_ticks == 0) process.reset();

  const bool has_handle = group.handle != ProcessWitness::kNoHandle;
  const bool is_zombie = has_handle && witness_.Look(group.handle) == ProcessState::kDead;
  const uint64_t unknown_ns = options_.watched_only ? 0 : known_.UnknownSince(group.times.ended_ns);
  const std::optional<int> pidfd = has_handle ? std::optional<int>(group.handle) : std::nullopt;
  const bool has_cgroup_path = stream_ == StreamKind::kGroups && !has_handle;
  delivery_.Stage({group, process, watch, is_zombie, unknown_ns, pidfd, has_cgroup_path});
}

}  // namespace exitwatch
