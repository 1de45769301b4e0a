#ifndef EXITWATCH_CORE_BPF_RECORDER_PROGRAM_H_
#define EXITWATCH_CORE_BPF_RECORDER_PROGRAM_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/bpf/group_filter.h"
#include "core/bpf/kernel_layout.h"

namespace exitwatch {

// The programs and maps of a recorder outlive the process that has loaded them, and another version
// of exitwatch may read them. A change of what is below is a change of this number.
constexpr uint32_t kRecorderLayout = 3;

// Identifies a process in a recorder's tables.
struct RecorderKey {
  uint64_t process;      // its pidfs inode; before Linux 6.9 its pid
  uint64_t start_ticks;  // with a pid: since boot, in hundredths of a second; else 0
};

// A process to record.
struct RecordedProcess {
  uint64_t has_signals;  // 1: there are some of its signals
  uint64_t since_ns;     // CLOCK_MONOTONIC: no signal from then on is missing
};

// The exit of a process, as its last thread writes it at sched_process_exit. The process still
// holds its memory then: it has exited when its pidfd is readable.
struct RecordedExit {
  GroupRecord group;
  uint64_t boot_ns;  // CLOCK_BOOTTIME
  uint64_t tai_ns;   // CLOCK_TAI; 0 before Linux 6.1
  char parent_name[kNameBytes];
};
static_assert(sizeof(RecordedExit) == sizeof(GroupRecord) + 32, "the program writes this layout");

// Identifies a signal to a watched process that ends it, or may: see RecorderSlot.
struct RecordedSignalKey {
  RecorderKey process;
  uint64_t slot;
};

// A process dies once: each of these is written at most a few times, however many signals it is
// sent.
enum RecorderSlot : uint32_t {
  kDeadlySlot,   // SignalRecord::kDeadly
  kTakenSlot,    // SignalRecord::kTaken
  kVictimSlot,   // SignalRecord::kOom
  kDefaultSlot,  // plus the signal's number: it has no handler, and has not been taken yet
};

constexpr uint32_t kMostSignals = 64;

// What did not fit.
struct RecorderLoss {
  uint64_t count;
  uint64_t first_ns;  // CLOCK_BOOTTIME, of the first since a reader has set this to 0
  uint64_t last_ns;
  uint64_t reported;  // how many of `count` a reader has reported
};

// What a recorder's programs share with its readers.
struct RecorderState {
  uint64_t lease_ns;   // CLOCK_BOOTTIME: from then on the programs return at once
  uint64_t delivered;  // readers may have delivered what the ring of exits has before this position
  uint64_t misses;     // of all programs for exits, at most; `exits` counts them, too
  uint64_t misses_read_ns;  // CLOCK_BOOTTIME
  uint64_t noticed;         // exits that only RecorderTurn::kNotice has recorded
  uint64_t unused[3];
  RecorderLoss exits;  // from the ring of exits
  uint64_t unused_beside_exits[4];
  RecorderLoss signals;  // from either ring
  uint64_t unused_beside_signals[4];
  RecorderLoss watched;  // from the tables of watched processes
  uint64_t unused_beside_watched[4];
};
static_assert(sizeof(RecorderState) == 256 && offsetof(RecorderState, exits) == 64 &&
                  offsetof(RecorderState, signals) == 128 &&
                  offsetof(RecorderState, watched) == 192,
              "each loss is on a cache line of its own");

struct RecorderMaps {
  int state;    // array with one RecorderState
  int watched;  // hash of RecordedProcess by RecorderKey
  int exits;    // hash of RecordedExit by RecorderKey
  int kept;     // hash of SignalRecord by RecordedSignalKey
  int ring;     // of RecordedExit, deadly SignalRecord and CgroupRecord, of all processes; -1: none
  int signals;  // the same of other signals: to watched processes, or with `ring`, to all
  // Arrays of kKnownCgroups ids, one for each ring; -1: paths are not recorded.
  int ring_cgroups;
  int signal_cgroups;
  int marks;  // array of kRecorderMarks; each stands for a process
  // Odd and random. An owner without privileges may read the maps: addresses of the kernel are
  // multiplied by it, and lose their lower bits.
  uint64_t secret;
};

constexpr uint32_t kRecorderMarks = 4096;

// The kernel leaves out a run of a program that is running on that CPU already. Linux 7.2 and 7.3
// let a program at a tracepoint be preempted meanwhile, and leave out one exit in a hundred in a
// busy emulated machine; 6.18 left out none. Therefore several programs look at each exit, and
// those that come later record what the earlier ones have not:
// - kFirst and then kBackup at sched_process_exit, as the process begins to exit
// - kNotice at signal_generate, when its parent gets SIGCHLD. The kernel holds a lock then, which
//   forbids preemption. A parent that ignores SIGCHLD gets none.
enum class RecorderTurn { kFirst, kBackup, kNotice };

// For these raw tracepoints. `has_tai`: the kernel has bpf_ktime_get_tai_ns() (Linux 6.1).
std::vector<bpf_insn> BuildRecorderProgram(const KernelLayout& layout, const RecorderMaps& maps,
                                           bool has_tai, RecorderTurn turn);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_RECORDER_PROGRAM_H_
