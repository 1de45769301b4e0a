#include "core/parse/proc_event.h"

#include <cstring>

namespace exitwatch {

namespace {

constexpr uint16_t kNetlinkDone = 3;  // NLMSG_DONE, the type of every connector message
constexpr uint32_t kIdxProc = 1;      // CN_IDX_PROC
constexpr uint32_t kValProc = 1;      // CN_VAL_PROC

template <typename T>
T Load(const uint8_t* datagram, uint32_t offset) {
  T value;
  std::memcpy(&value, datagram + offset, sizeof(value));
  return value;
}

bool ThreadCanBe(const ProcEvent& event) { return event.pid > 0 && event.tgid > 0; }

}  // namespace

bool ParseProcEvent(const uint8_t* datagram, size_t size, ProcEvent* event) {
  if (size < wire::kPayload) return false;
  const uint32_t netlink_length = Load<uint32_t>(datagram, wire::kNetlinkLength);
  if (netlink_length < wire::kPayload || netlink_length > size) return false;
  if (Load<uint16_t>(datagram, wire::kNetlinkType) != kNetlinkDone) return false;
  if (Load<uint32_t>(datagram, wire::kConnectorIdx) != kIdxProc ||
      Load<uint32_t>(datagram, wire::kConnectorVal) != kValProc) {
    return false;
  }
  const uint32_t end = wire::kEvent + Load<uint16_t>(datagram, wire::kConnectorLength);
  if (end > netlink_length) return false;

  *event = ProcEvent();
  event->what = Load<uint32_t>(datagram, wire::kWhat);
  event->ack = Load<uint32_t>(datagram, wire::kConnectorAck);
  event->timestamp_ns = Load<uint64_t>(datagram, wire::kTimestamp);
  switch (event->what) {
    case kProcEventNone:
      if (end < wire::kPayload + 4) return false;
      event->error = Load<uint32_t>(datagram, wire::kPayload);
      return true;
    case kProcEventFork:
      if (end < wire::kForkChildTgid + 4) return false;
      event->parent_tgid = Load<int32_t>(datagram, wire::kForkParentTgid);
      event->pid = Load<int32_t>(datagram, wire::kForkChildPid);
      event->tgid = Load<int32_t>(datagram, wire::kForkChildTgid);
      return ThreadCanBe(*event);
    case kProcEventExec:
    case kProcEventCoredump:
      if (end < wire::kExitTgid + 4) return false;
      event->pid = Load<int32_t>(datagram, wire::kExitPid);
      event->tgid = Load<int32_t>(datagram, wire::kExitTgid);
      return ThreadCanBe(*event);
    case kProcEventExit:
      if (end < wire::kExitParentTgid + 4) return false;
      event->pid = Load<int32_t>(datagram, wire::kExitPid);
      event->tgid = Load<int32_t>(datagram, wire::kExitTgid);
      event->exit_code = Load<int32_t>(datagram, wire::kExitCode);
      event->parent_tgid = Load<int32_t>(datagram, wire::kExitParentTgid);
      return ThreadCanBe(*event) && event->exit_code >= 0 && event->exit_code <= 0xffff;
    default:
      return true;
  }
}

}  // namespace exitwatch
