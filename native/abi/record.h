#ifndef EXITWATCH_ABI_RECORD_H_
#define EXITWATCH_ABI_RECORD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "abi/failure.h"
#include "abi/names.h"

namespace exitwatch {

// The records of a batch that crosses to JavaScript, byte for byte. Every record begins with its
// kind. Numbers that may exceed 32 bits are doubles, like JavaScript's numbers. Times are on the
// host's CLOCK_MONOTONIC; add `clock_ms` (milliseconds) to convert them to CLOCK_REALTIME.
enum class RecordKind : int32_t { kExit = 1, kGap, kReady, kFailed, kSource };

// The exit of a process.
struct ExitRecord {
  enum Flags : uint32_t {
    kStatusKnown = 1u << 0,
    kCoreKnown = 1u << 1,
    kKernelTime = 1u << 2,  // time_ns comes from the kernel
    kNameKnown = 1u << 3,
    kUidKnown = 1u << 4,
    kStartKnown = 1u << 5,
    kLossless = 1u << 6,
    kWatched = 1u << 7,
    kLost = 1u << 8,             // status unknown because events were lost
    kNotReaped = 1u << 9,        // status unknown because the parent has not reaped it
    kNotPermitted = 1u << 10,    // status unknown because it could no longer be read
    kOnlyForWatcher = 1u << 11,  // only for watchers: the stream is yet to report this exit
    kTraced = 1u << 12,          // the signal trace lost nothing while it observed the process
    kUsageKnown = 1u << 13,
    kIoKnown = 1u << 14,  // read_bytes and written_bytes
  };

  RecordKind kind = RecordKind::kExit;
  uint32_t flags = 0;
  double time_ns = 0;
  double clock_ms = 0;
  double from_ns = 0;  // when observation of the process began
  double uncertainty_ns = 0;
  double start_ticks = 0;  // since boot
  double started_ms = 0;   // on CLOCK_REALTIME
  double inode = 0;        // of pidfs; 0 if unknown
  double cgroup = 0;       // its id in the v2 hierarchy; 0 if unknown
  // With kTraced: when the signal trace began to see the process; 0: at its start.
  double traced_from_ns = 0;
  // With kUsageKnown: what its threads have used.
  double user_ns = 0;
  double system_ns = 0;
  double max_rss_bytes = 0;
  double read_bytes = 0;
  double written_bytes = 0;
  double command_line = 0;  // its number in CommandLines; 0: unknown
  int32_t pid = 0;
  int32_t parent_pid = 0;  // 0 if unknown
  int32_t status = 0;      // raw wait status
  uint32_t uid = 0;
  char name[kNameBytes] = {};
  char executable[kExecutableBytes] = {};  // the file name; empty if unknown
  char parent_name[kNameBytes] = {};       // empty if unknown
};

enum class GapReason : int32_t {
  kReceiveBuffer,  // the kernel's buffer was full
  kQueueLimit,     // our own queue was full
  kSilenced,       // events stopped arriving; the number lost is unknown
  kTraceBuffer,    // the signal trace's buffer was full
};

// Events were lost.
struct GapRecord {
  RecordKind kind = RecordKind::kGap;
  GapReason reason = GapReason::kReceiveBuffer;
  double from_ns = 0;
  double to_ns = 0;
  double clock_ms = 0;
  double lost = 0;
  int32_t recovered = 0;  // exits of watched processes that were recovered afterwards
  int32_t unused = 0;
};

// kReady, kSource: the source that reports exits from now on and, if it is not the stream, why.
// kFailed: why nothing reports them.
struct SourceRecord {
  RecordKind kind = RecordKind::kSource;
  int32_t has_stream = 0;
  double time_ns = 0;
  double clock_ms = 0;
  double buffer_bytes = 0;  // of the stream
  Failure failure = Failure::kNone;
  int32_t error_number = 0;    // errno
  int32_t names_programs = 0;  // exits include the names of their executables
  int32_t unused = 0;
  char syscall[kNameBytes] = {};
};

using Record = std::variant<ExitRecord, GapRecord, SourceRecord>;

// The size of each record in a batch.
constexpr size_t kRecordBytes =
    std::max({sizeof(ExitRecord), sizeof(GapRecord), sizeof(SourceRecord)});

}  // namespace exitwatch

#endif  // EXITWATCH_ABI_RECORD_H_
