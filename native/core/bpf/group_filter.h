#ifndef EXITWATCH_CORE_BPF_GROUP_FILTER_H_
#define EXITWATCH_CORE_BPF_GROUP_FILTER_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/bpf/executable_program.h"
#include "core/bpf/kernel_layout.h"
#include "core/parse/proc_stat.h"

namespace exitwatch {

// What the eBPF filter writes into its ring buffer: in the kernel's words, by the dying
// task itself.
struct GroupRecord {
  enum Flags : uint32_t {
    kDead = 1u << 0,           // every thread has ended; otherwise see kTraced
    kTraced = 1u << 1,         // a thread has ended, but stays until its tracer lets go of it
    kStatusKnown = 1u << 2,    // `status` is what the parent's waitpid returns
    kFirstThread = 1u << 3,    // start_ns and name are the first thread's
    kMayBeRepeated = 1u << 4,  // another thread may find the group dead, too
  };

  uint64_t time_ns;    // CLOCK_MONOTONIC: the exit event's timestamp
  uint64_t inode;      // of pidfs; 0 where the kernel has none, or the process was reaped already
  uint64_t cgroup;     // its id in the v2 hierarchy; 0 where not known
  uint64_t group;      // the same for all threads of a group, and for no other while one is left
  uint64_t start_ns;   // CLOCK_BOOTTIME
  int32_t pid;         // of the process
  int32_t parent_pid;  // 0 where it was reaped already
  int32_t status;      // raw wait status
  uint32_t uid;        // effective
  uint32_t flags;
  uint32_t unused;
  char name[kNameBytes];
  char executable[kExecutableBytes];  // the file name; empty where not known
};
static_assert(sizeof(GroupRecord) == 144 && offsetof(GroupRecord, name) == 64 &&
                  offsetof(GroupRecord, executable) == 80,
              "the filter writes this layout");
static_assert(offsetof(GroupRecord, start_ns) - offsetof(GroupRecord, group) ==
                  offsetof(ExecutableKey, start_ns),
              "there is an ExecutableKey in it");

// What the filter and user space share, beside the records.
struct GroupFilterState {
  // 1: nobody is reading; the next task that writes a record sets 0, and lets its message through,
  // which wakes the reader. While it reads, records come without messages.
  uint32_t doorbell;
  // 1: the one that waits for the doorbell may be busy with other things. When it has rung in vain
  // for a while, a record wakes the fallback reader, which waits for the ring buffer.
  uint32_t has_fallback_reader;
  uint64_t rung_ns;  // when it rang last: the record's time
  uint32_t unused[12];
  uint64_t lost;  // records that did not fit into the ring buffer
};
static_assert(offsetof(GroupFilterState, lost) == 64, "on a cache line of its own");

struct GroupFilterMaps {
  int ring;         // BPF_MAP_TYPE_RINGBUF of GroupRecord and CgroupRecord
  int state;        // array with one GroupFilterState
  int watched;      // array of 64-bit words, a bit for each process to tell of; -1: all are
  int cgroups;      // array of kKnownCgroups ids; -1: paths are not told
  int executables;  // ExecutableMaps::names; -1: they are not told
};

// The eBPF filter of the connector's socket: a program that runs in the dying task and looks
// for itself whether its whole thread group is dead, and with which status. Beside what it writes
// into the ring buffer it lets through:
//  - subscription answers;
//  - every thread exit of `own_tgid`, by which the reader proves that events arrive;
//  - what the kernel cannot have sent, for user space to count: a task that sends an exit event is
//    dying itself.
// Exits of kernel threads are left out.
std::vector<bpf_insn> BuildGroupFilter(const KernelLayout& layout, const GroupFilterMaps& maps,
                                       uint32_t own_tgid);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_GROUP_FILTER_H_
