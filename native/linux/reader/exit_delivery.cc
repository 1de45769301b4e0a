#include "linux/reader/exit_delivery.h"

#include <cstring>
#include <utility>
#include <variant>

#include "linux/reader/exit_record.h"
#include "linux/system/pidfd.h"

namespace exitwatch {

namespace {

SourceRecord MakeSourceRecord(RecordKind kind, const SystemError& error) {
  SourceRecord record;
  record.kind = kind;
  record.failure = error.code;
  record.error_number = error.number;
  std::strncpy(record.syscall, error.syscall, sizeof(record.syscall) - 1);
  return record;
}

}  // namespace

ExitDelivery::ExitDelivery(const Options& options, const KernelClock& clock, CgroupPaths& cgroups,
                           TracedSignals& signals, std::function<void()> wake)
    : watched_only_(options.watched_only),
      clock_(clock),
      cgroups_(cgroups),
      signals_(signals),
      wake_(std::move(wake)),
      queue_(options.queue_limit) {}

void ExitDelivery::Stage(const End& end) {
  const ReadingTimes times = {clock_,      armed_ns_, end.unknown_ns,
                              gap_end_ns_, wake_ns_,  watched_only_};
  ExitRecord record = MakeExitRecord(end.group, end.process, end.watch, end.is_zombie, times);
  if (!end.has_cgroup_path) {
    if (const uint64_t cgroup = end.pidfd ? PidfdCgroup(*end.pidfd) : 0) {
      record.cgroup = static_cast<double>(cgroup);
    }
    // The cgroup may be gone when JavaScript asks for its path.
    cgroups_.Look(static_cast<uint64_t>(record.cgroup));
  }
  staged_.emplace_back(record);
}

void ExitDelivery::StageGap(GapRecord gap) {
  gap.to_ns = static_cast<double>(gap_end_ns_);
  gap.clock_ms = static_cast<double>(clock_.realtime_offset_ns()) / 1e6;
  staged_.emplace_back(gap);
}

void ExitDelivery::StageSource(RecordKind kind, const SystemError& error,
                               const std::optional<StreamProperties>& stream) {
  SourceRecord record = MakeSourceRecord(kind, error);
  record.time_ns = static_cast<double>(clock_.Now());
  record.clock_ms = static_cast<double>(clock_.realtime_offset_ns()) / 1e6;
  if (stream) {
    record.has_stream = 1;
    record.buffer_bytes = static_cast<double>(stream->buffer_bytes);
    record.names_programs = stream->names_programs ? 1 : 0;
  }
  staged_.insert(kind == RecordKind::kReady ? staged_.begin() : staged_.end(), record);
}

void ExitDelivery::Doubt(uint64_t since_ns) {
  for (Record& record : staged_) {
    auto* exit = std::get_if<ExitRecord>(&record);
    if (exit != nullptr && exit->time_ns >= static_cast<double>(since_ns)) {
      exit->flags &= ~ExitRecord::kLossless;
    }
  }
}

void ExitDelivery::Flush() {
  // The signals that led to an exit come before it.
  const bool is_wanted = signals_.Collect(clock_, staged_);
  if (staged_.empty() && !is_wanted) return;
  queue_.Push(staged_);
  staged_.clear();
  wake_();
}

void ExitDelivery::Fail(const SystemError& error) {
  staged_.emplace_back(MakeSourceRecord(RecordKind::kFailed, error));
  Flush();
}

}  // namespace exitwatch
