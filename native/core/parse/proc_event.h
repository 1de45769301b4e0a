#ifndef EXITWATCH_CORE_PARSE_PROC_EVENT_H_
#define EXITWATCH_CORE_PARSE_PROC_EVENT_H_

#include <cstddef>
#include <cstdint>

namespace exitwatch {

// Offsets of the fields of a proc connector datagram: a nlmsghdr (16 bytes), a cn_msg (20) and a
// proc_event. The socket filter and the parser use the same offsets.
namespace wire {
constexpr uint32_t kNetlinkLength = 0;
constexpr uint32_t kNetlinkType = 4;
constexpr uint32_t kConnectorIdx = 16;
constexpr uint32_t kConnectorVal = 20;
constexpr uint32_t kConnectorAck = 28;
constexpr uint32_t kConnectorLength = 32;
constexpr uint32_t kEvent = 36;
constexpr uint32_t kWhat = 36;
constexpr uint32_t kTimestamp = 44;  // not 8-aligned
constexpr uint32_t kPayload = 52;
constexpr uint32_t kExitPid = 52;
constexpr uint32_t kExitTgid = 56;
constexpr uint32_t kExitCode = 60;
constexpr uint32_t kExitParentTgid = 72;
constexpr uint32_t kForkParentTgid = 56;
constexpr uint32_t kForkChildPid = 60;
constexpr uint32_t kForkChildTgid = 64;
// The size of a datagram on every kernel that exitwatch supports (proc_event has had 40 bytes since
// 3.2).
constexpr uint32_t kDatagramBytes = 76;
}  // namespace wire

// The part of enum proc_cn_event in <linux/cn_proc.h> that exitwatch uses.
constexpr uint32_t kProcEventNone = 0;  // the answer to a subscription (ACK)
constexpr uint32_t kProcEventFork = 0x00000001;
constexpr uint32_t kProcEventExec = 0x00000002;
constexpr uint32_t kProcEventCoredump = 0x40000000;
constexpr uint32_t kProcEventExit = 0x80000000;

// One event of the proc connector. `what` decides which fields are valid.
struct ProcEvent {
  uint32_t what = kProcEventNone;
  uint32_t ack = 0;           // kProcEventNone: the sender's ack number plus one
  uint32_t error = 0;         // kProcEventNone: errno
  uint64_t timestamp_ns = 0;  // CLOCK_MONOTONIC of the host's time namespace
  int32_t pid = 0;            // the thread (fork: the child)
  int32_t tgid = 0;           // its thread group (fork: the child's)
  int32_t exit_code = 0;      // exit: the thread's own code, as a raw wait status
  // exit: 0 if the process was already released; fork: the process that forked
  int32_t parent_tgid = 0;

  bool IsLeader() const { return pid == tgid; }

  // For an exit: the parent had already reaped the process when the event was made, so that even
  // then another process may have had the pid.
  bool IsOfReleased() const { return parent_tgid == 0; }
};

// False if the datagram is too short, is inconsistent, or names an impossible thread.
bool ParseProcEvent(const uint8_t* datagram, size_t size, ProcEvent* event);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_PARSE_PROC_EVENT_H_
