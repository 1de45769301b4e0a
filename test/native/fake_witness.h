#ifndef EXITWATCH_TEST_FAKE_WITNESS_H_
#define EXITWATCH_TEST_FAKE_WITNESS_H_

#include <map>
#include <optional>

#include "core/groups/process_witness.h"

namespace exitwatch::test {

// Processes that a test defines, on a clock that it moves.
class FakeWitness : public ProcessWitness {
 public:
  struct Process {
    ProcessState life = ProcessState::kGone;
    ProcStat stat;
    bool may_read = true;
    std::optional<int32_t> exit_status;
    uint64_t inode = 0;
  };

  ProcessState Open(int32_t pid, Handle* handle) override {
    const ProcessState life = processes[pid].life;
    if (life == ProcessState::kAlive || life == ProcessState::kDead) {
      *handle = pid;
      open++;
    }
    return life;
  }
  void Close(Handle handle) override {
    if (handle != kNoHandle) open--;
  }
  uint64_t Inode(Handle handle) override { return processes[handle].inode; }
  ProcessState Look(Handle handle) override { return processes[handle].life; }
  bool Hold(Handle, int32_t) override { return can_hold; }
  bool ReadStat(int32_t pid, ProcStat* stat) override {
    *stat = processes[pid].stat;
    stat->pid = pid;
    return processes[pid].life != ProcessState::kGone;
  }
  std::optional<uint32_t> ReadUid(int32_t) override { return 0; }
  std::optional<int32_t> ReadExitStatus(Handle handle) override {
    return processes[handle].exit_status;
  }
  bool MayReadExitCode(int32_t pid) override { return processes[pid].may_read; }
  bool StatTellsStatus() override { return stat_tells_status; }
  uint64_t Now() override { return now_ns; }
  uint64_t TickOf(uint64_t timestamp_ns) override { return timestamp_ns / (10'000'000); }

  std::map<int32_t, Process> processes;
  uint64_t now_ns = 1'000'000'000;
  int open = 0;
  bool can_hold = true;
  bool stat_tells_status = true;
};

}  // namespace exitwatch::test

#endif  // EXITWATCH_TEST_FAKE_WITNESS_H_
