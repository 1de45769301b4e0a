#ifndef EXITWATCH_CORE_BPF_GROUP_FILTER_H_
#define EXITWATCH_CORE_BPF_GROUP_FILTER_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/bpf/exit_note_program.h"
#include "core/bpf/kernel_layout.h"
#include "core/groups/process_usage.h"
#include "core/parse/proc_stat.h"

namespace exitwatch {

// A process that exits. The dying task itself writes it, from the kernel's own data.
struct GroupRecord {
  enum Flags : uint32_t {
    kDead = 1u << 0,           // every thread has ended; otherwise see kPtraced
    kPtraced = 1u << 1,        // a thread has exited, but stays until its debugger releases it
    kStatusKnown = 1u << 2,    // `status` is what the parent's waitpid returns
    kFirstThread = 1u << 3,    // start_ns and name are the first thread's
    kMayBeRepeated = 1u << 4,  // another thread may also find the group dead
    // Of a GroupReport:
    kUsageKnown = 1u << 5,
    kIoKnown = 1u << 6,
  };

  uint64_t time_ns;    // CLOCK_MONOTONIC: the exit event's timestamp
  uint64_t inode;      // of pidfs; 0 if unknown, or the kernel has none
  uint64_t cgroup;     // its id in the v2 hierarchy; 0 if unknown
  uint64_t group;      // same for all threads of a group, and unique while one of them exists
  uint64_t start_ns;   // CLOCK_BOOTTIME
  int32_t pid;         // of the process
  int32_t parent_pid;  // 0 if unknown
  int32_t status;      // raw wait status
  uint32_t uid;        // effective
  uint32_t flags;
  uint32_t unused;
  char name[kNameBytes];
  char executable[kExecutableBytes];  // the file name; empty if unknown
};
static_assert(sizeof(GroupRecord) == 144 && offsetof(GroupRecord, name) == 64 &&
                  offsetof(GroupRecord, executable) == 80,
              "the filter writes this layout");
static_assert(offsetof(GroupRecord, start_ns) - offsetof(GroupRecord, group) ==
                  offsetof(ExitNoteKey, start_ns),
              "there is an ExitNoteKey in it");

// What the eBPF filter writes: the record, and what only it finds out.
struct GroupReport {
  GroupRecord group;
  ProcessUsage usage;            // if kUsageKnown; without kIoKnown no bytes
  char parent_name[kNameBytes];  // empty if the parent is unknown
};
static_assert(sizeof(GroupReport) == sizeof(GroupRecord) + 64, "the filter writes this layout");

// Shared by the filter and user space, besides the records.
struct GroupFilterState {
  // 1: nobody is reading. The next task that writes a record sets 0 and passes its message, which
  // wakes the reader. While the reader runs, records come without messages.
  uint32_t doorbell;
  // 1: the reader that waits for the doorbell may be busy. If the doorbell has rung in vain for a
  // while, a record wakes the fallback reader, which waits for the ring buffer.
  uint32_t has_fallback_reader;
  uint64_t rung_ns;  // when it last rang: the record's time
  uint32_t unused[12];
  uint64_t lost;  // records that did not fit into the ring buffer
};
static_assert(offsetof(GroupFilterState, lost) == 64, "on a cache line of its own");

struct GroupFilterMaps {
  int ring;     // BPF_MAP_TYPE_RINGBUF of GroupReport and CgroupRecord
  int state;    // array with one GroupFilterState
  int watched;  // array of 64-bit words, one bit per process to report; -1: all are
  int cgroups;  // array of kKnownCgroups ids; -1: do not report paths
  int notes;    // ExitNoteMaps::notes; -1: there are none
  // A reader that lets records come together is woken when the ring buffer holds more than this; 0:
  // there is no such reader.
  size_t wake_above_bytes;
};

// The eBPF filter of the connector's socket. It runs in the dying task and determines whether the
// whole thread group is dead, and with which status. Besides writing records to the ring buffer, it
// passes:
//  - subscription answers;
//  - every thread exit of `own_tgid`, which proves to the reader that events arrive;
//  - what the kernel cannot have sent, for user space to count: a task that sends an exit event is
//    itself dying.
// It leaves out exits of kernel threads.
std::vector<bpf_insn> BuildGroupFilter(const KernelLayout& layout, const GroupFilterMaps& maps,
                                       uint32_t own_tgid);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_GROUP_FILTER_H_
