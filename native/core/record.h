#ifndef EXITWATCH_CORE_RECORD_H_
#define EXITWATCH_CORE_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "core/executable_program.h"
#include "core/proc_stat.h"

namespace exitwatch {

// One entry of a batch that crosses to JavaScript, byte for byte: src/sources/kernel-records.ts
// reads the same layout. Numbers that may exceed 32 bits are doubles, as JavaScript has them.
struct Record {
  enum Kind : int32_t { kExit = 1, kGap = 2, kReady = 3, kFailed = 4, kSource = 5 };

  enum Flags : uint32_t {
    kStatusKnown = 1u << 0,
    kCoreKnown = 1u << 1,
    kKernelTime = 1u << 2,  // time_ns is the kernel's own
    kNameKnown = 1u << 3,
    kUidKnown = 1u << 4,
    kStartKnown = 1u << 5,
    kLossless = 1u << 6,
    kWatched = 1u << 7,
    kLost = 1u << 8,            // status unknown because events were lost
    kNotReaped = 1u << 9,       // status unknown because the parent has not reaped it
    kQueueLimit = 1u << 10,     // gap: our queue was full; otherwise the kernel's buffer
    kSilenced = 1u << 12,       // gap: events ceased to come; how many is not known
    kTold = 1u << 11,           // exit: only for who watches; the stream tells it to everybody
    kNoStream = 1u << 13,       // ready, source: pidfds alone tell
    kNotPermitted = 1u << 14,   // status unknown because it could not be read any more
    kTraced = 1u << 15,         // exit: the signal trace has lost nothing while it was observed
    kTraceBuffer = 1u << 16,    // gap: of the signal trace
    kNamesPrograms = 1u << 17,  // ready, source: exits come with their executables' names
  };

  double time_ns = 0;         // exit: when, on CLOCK_MONOTONIC of the host; gap: its end
  double from_ns = 0;         // exit: since when its process was observed; gap: its begin
  double clock_ms = 0;        // what to add to a time, in ms, to have CLOCK_REALTIME
  double uncertainty_ns = 0;  // exit
  double start_ticks = 0;     // exit: since boot
  double started_ms = 0;      // exit: start on CLOCK_REALTIME
  double inode = 0;           // exit: of pidfs; 0 where not known
  double cgroup = 0;          // exit: its id in the v2 hierarchy; 0 where not known
  double count = 0;           // gap: lost; ready, source: receive buffer in bytes
  // exit: with kTraced, since when the signal trace saw its process; 0: since its start
  double traced_from_ns = 0;
  int32_t kind = 0;
  int32_t pid = 0;         // exit
  int32_t parent_pid = 0;  // exit: 0 where not known
  int32_t status = 0;      // exit: raw wait status; gap: recovered; failed, ready, source: errno
  uint32_t uid = 0;        // exit; failed, ready, source: Failure
  uint32_t flags = 0;
  char name[kNameBytes] = {};              // exit; failed, ready, source: the system call
  char executable[kExecutableBytes] = {};  // exit: the file name; empty where not known
};

static_assert(sizeof(Record) == 184 && offsetof(Record, kind) == 80 &&
                  offsetof(Record, name) == 104 && offsetof(Record, executable) == 120,
              "the layout is read by JavaScript");

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_RECORD_H_
