// Feeds the aggregator events in any order, about processes whose state may be anything at any
// time.
#include <algorithm>
#include <set>

#include "core/groups/thread_group_aggregator.h"
#include "fake_witness.h"

namespace {

using exitwatch::GroupIdentity;
using exitwatch::ProcessState;
using exitwatch::ProcessWitness;
using exitwatch::ProcEvent;
using exitwatch::StreamKind;
using exitwatch::ThreadGroup;
using exitwatch::ThreadGroupAggregator;

constexpr uint64_t kMs = 1'000'000;

// Reads bytes from the input, and zeros after its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool IsEmpty() const { return size_ == 0; }
  uint8_t Byte() {
    if (size_ == 0) return 0;
    size_--;
    return *data_++;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

ProcEvent EventOf(Input& input, uint64_t now_ns) {
  ProcEvent event;
  const uint8_t who = input.Byte();
  event.tgid = 1 + who % 3;
  event.pid = (who & 0x10) != 0 ? event.tgid : 10 + who % 5;
  event.exit_code = input.Byte() | (who & 0x20) << 3;
  event.parent_tgid = who >> 7;
  event.timestamp_ns = now_ns - (who & 0x40) * 1000;
  return event;
}

void ChangeProcess(Input& input, exitwatch::test::FakeWitness& witness) {
  const uint8_t how = input.Byte();
  auto& process = witness.processes[1 + how % 3];
  process.life = static_cast<ProcessState>(how >> 2 & 3);
  process.stat.state = (how & 0x10) != 0 ? 'Z' : 'S';
  process.stat.threads = (how >> 5 & 3) % 3;
  process.stat.exit_code = input.Byte();
  process.stat.start_ticks = witness.TickOf(witness.now_ns) - (how >> 6 & 1);
  process.inode = how >> 7 != 0 ? input.Byte() : 0;
  process.may_read = (how & 0x20) != 0;
  if ((how & 0x40) != 0) process.exit_status = input.Byte();
  witness.can_hold = (how & 0x80) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  exitwatch::test::FakeWitness witness;
  size_t events = 0;
  size_t ends = 0;
  {
    ThreadGroupAggregator aggregator(witness, 1'000'000'000, [&](const ThreadGroup& group) {
      ends++;
      if (group.pid < 1 || group.pid > 3) __builtin_trap();
      const std::optional<int32_t> status = group.Status();
      if (status && (*status < 0 || *status > 0xffff)) __builtin_trap();
      if (group.times.ended_ns > witness.now_ns) __builtin_trap();
      group.CoreDumped();
    });
    while (!input.IsEmpty()) {
      const ProcEvent event = EventOf(input, witness.now_ns);
      events++;
      switch (input.Byte() % 12) {
        case 0:
        case 1:
          aggregator.OnExit(event);
          break;
        case 2:
          aggregator.OnExec(event);
          break;
        case 11:
          aggregator.OnFork(event);
          break;
        case 3:
          aggregator.OnCoredump(event);
          break;
        case 4:
          aggregator.OnPtracedExit(event, event.exit_code % 2 == 0);
          break;
        case 5:
          aggregator.OnHandleReady(event.tgid, witness.now_ns - kMs);
          break;
        case 6:
          aggregator.Presume({event.tgid, 0, 0, 0}, witness.now_ns - kMs);
          break;
        case 7: {
          ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
          witness.Open(event.tgid, &handle);
          if (handle != ProcessWitness::kNoHandle) {
            aggregator.Adopt({event.tgid}, handle, witness.now_ns, ThreadGroup::Cause::kFound);
          }
          break;
        }
        case 9: {
          ProcessWitness::Handle handle = ProcessWitness::kNoHandle;
          if (witness.Open(event.tgid, &handle) == ProcessState::kDead) {
            aggregator.AdoptDead(
                {event.tgid, 0, event.exit_code % 4u, 0, 0}, handle, witness.now_ns - kMs,
                ThreadGroup::Cause::kPidfd,
                static_cast<ThreadGroup::Outstanding>((event.exit_code & 0xff) % 4));
          } else {
            witness.Close(handle);
          }
          break;
        }
        case 10:
          aggregator.SetStream(static_cast<StreamKind>(event.exit_code % 3));
          break;
        case 8:
          aggregator.Supersede({event.tgid, 0, event.exit_code % 4u, 0});
          aggregator.ForgetUnconfirmed();
          break;
      }
      ChangeProcess(input, witness);
      witness.now_ns += input.Byte() * kMs / 8;
      aggregator.Settle(witness.now_ns);
      aggregator.NextDeadline();
    }
  }
  // Every handle is closed, and no end is reported without an event.
  if (witness.open != 0 || ends > events) __builtin_trap();
  return 0;
}
