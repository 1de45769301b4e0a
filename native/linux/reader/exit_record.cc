#include "linux/reader/exit_record.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// Whether the source of the status was lost, or did not come in time.
bool IsLost(const ThreadGroup& group) {
  return group.outstanding != ThreadGroup::Outstanding::kNothing && !group.events.leader_known;
}

void SetStatus(const ThreadGroup& group, bool is_zombie, ExitRecord& record) {
  if (const std::optional<int32_t> status = group.Status()) {
    record.status = *status;
    record.flags |= ExitRecord::kStatusKnown;
    if (group.CoreDumped()) record.flags |= ExitRecord::kCoreKnown;
  } else if (group.cause == ThreadGroup::Cause::kLost || IsLost(group)) {
    record.flags |= ExitRecord::kLost;
  } else if (is_zombie) {
    record.flags |= ExitRecord::kNotReaped;
  } else if (group.cause == ThreadGroup::Cause::kPidfd ||
             group.cause == ThreadGroup::Cause::kStream || group.was_held) {
    record.flags |= ExitRecord::kNotPermitted;
  }
}

void SetTime(const ThreadGroup& group, const ReadingTimes& times, ExitRecord& record) {
  record.time_ns = static_cast<double>(group.times.ended_ns);
  record.uncertainty_ns = static_cast<double>(group.times.uncertainty_ns);
  record.clock_ms = static_cast<double>(times.clock.realtime_offset_ns()) / 1e6;
  if (group.times.ended_by_kernel) record.flags |= ExitRecord::kKernelTime;
  // Since the last look, the wall clock was set or the machine was suspended: before this exit or
  // after.
  const uint64_t earliest_ns =
      group.times.ended_ns - std::min(group.times.ended_ns, group.times.uncertainty_ns);
  if (times.clock.jump_ns() != 0 && earliest_ns + kMillisecond < times.wake_ns) {
    record.uncertainty_ns += static_cast<double>(times.clock.jump_ns());
  }
}

void SetProcess(const ProcessEntry& process, uint64_t started_ns, ExitRecord& record) {
  record.start_ticks = static_cast<double>(process.start_ticks);
  record.started_ms = static_cast<double>(started_ns) / 1e6 + record.clock_ms;
  record.inode = static_cast<double>(process.inode);
  std::memcpy(record.name, process.name, sizeof(record.name));
  record.flags |= ExitRecord::kStartKnown | ExitRecord::kNameKnown;
  if (process.uid) {
    record.uid = *process.uid;
    record.flags |= ExitRecord::kUidKnown;
  }
}

void SetUsage(const ThreadGroup& group, ExitRecord& record) {
  if (!group.usage) return;
  static const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  const CpuTimes times = DivideRuntime(*group.usage);
  record.flags |= ExitRecord::kUsageKnown;
  record.user_ns = static_cast<double>(times.user_ns);
  record.system_ns = static_cast<double>(times.system_ns);
  record.max_rss_bytes = static_cast<double>(group.usage->max_rss_pages) * page_bytes;
  if (!group.has_io) return;
  record.flags |= ExitRecord::kIoKnown;
  record.read_bytes = static_cast<double>(group.usage->read_bytes);
  record.written_bytes = static_cast<double>(group.usage->written_bytes);
}

}  // namespace

ThreadGroup MakeDeadGroup(const GroupReport& report, const KernelClock& clock) {
  const GroupRecord& record = report.group;
  ThreadGroup group(record.pid);
  group.stage = ThreadGroup::Stage::kDead;
  group.parent_pid = record.parent_pid;
  if ((record.flags & GroupRecord::kStatusKnown) != 0) {
    group.events.leader_known = true;
    group.answers.group_status = record.status;
    group.answers.group_status_has_core = true;
  }
  group.inode = record.inode;
  group.cgroup = record.cgroup;
  group.answers.uid = record.uid;
  group.times.ended_ns = record.time_ns;
  group.times.ended_by_kernel = true;
  if ((record.flags & GroupRecord::kFirstThread) != 0) {
    group.start_ns = record.start_ns;
    group.answers.has_stat = true;
    group.answers.stat.pid = record.pid;
    group.answers.stat.parent_pid = record.parent_pid;
    group.answers.stat.start_ticks = clock.TickOfStart(record.start_ns);
    std::memcpy(group.answers.stat.name, record.name, sizeof(group.answers.stat.name) - 1);
  }
  // A name that fills its space may be truncated: leave it out.
  if (strnlen(record.executable, kExecutableBytes) < kExecutableBytes - 1) {
    std::memcpy(group.executable, record.executable, kExecutableBytes);
  }
  std::memcpy(group.parent_name, report.parent_name, kNameBytes);
  if ((record.flags & GroupRecord::kUsageKnown) != 0) group.usage = report.usage;
  group.has_io = (record.flags & GroupRecord::kIoKnown) != 0;
  return group;
}

ExitRecord MakeExitRecord(const ThreadGroup& group, const std::optional<ProcessEntry>& known,
                          const std::optional<Watch>& watch, bool is_zombie,
                          const ReadingTimes& times) {
  // What was read after the exit is newer than what was read before.
  std::optional<ProcessEntry> process = known;
  if (group.answers.has_stat) {
    process = ProcessEntry(group.answers.stat, group.inode, group.answers.uid);
    if (known && known->start_ticks == process->start_ticks) {
      if (!process->uid) process->uid = known->uid;
      if (process->inode == 0) process->inode = known->inode;
    }
  }
  uint64_t started_ns = 0;
  if (group.start_ns != 0) {
    started_ns = times.clock.TimeOfStart(group.start_ns);
  } else if (process) {
    started_ns = times.clock.TimeOfTick(process->start_ticks);
  }

  ExitRecord record;
  record.pid = group.pid;
  record.parent_pid = group.parent_pid == 0 && group.answers.has_stat
                          ? group.answers.stat.parent_pid
                          : group.parent_pid;
  if (watch) record.flags |= ExitRecord::kWatched;
  if (group.cause == ThreadGroup::Cause::kWatched && !group.events.leader_known) {
    record.flags |= ExitRecord::kOnlyForWatcher;
  }
  SetStatus(group, is_zombie, record);
  SetTime(group, times, record);
  record.cgroup = static_cast<double>(group.cgroup);
  if (group.cgroup == 0 && known) record.cgroup = static_cast<double>(known->cgroup);
  if (process) SetProcess(*process, started_ns, record);
  std::memcpy(record.executable, group.executable, sizeof(record.executable));
  if (record.parent_pid != 0) {
    std::memcpy(record.parent_name, group.parent_name, sizeof(record.parent_name));
  }
  SetUsage(group, record);
  record.command_line = static_cast<double>(group.command_line);

  uint64_t observed_ns = times.armed_ns;
  if (watch) observed_ns = std::max(observed_ns, watch->since_ns);
  observed_ns = std::max(observed_ns, process ? started_ns : times.unknown_ns);
  record.from_ns = static_cast<double>(observed_ns);
  if (watch && times.is_traced_by_watch) {
    record.traced_from_ns = static_cast<double>(watch->armed_ns);
  }
  if (times.gap_end_ns <= observed_ns) record.flags |= ExitRecord::kLossless;
  return record;
}

}  // namespace exitwatch
