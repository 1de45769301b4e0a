// Tests of native/core, which needs no kernel: prints what is wrong, and ends with 1 then.
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "core/bpf_assembler.h"
#include "core/btf.h"
#include "core/ended_groups.h"
#include "core/kernel_layout.h"
#include "core/proc_event.h"
#include "core/proc_stat.h"
#include "core/record_queue.h"
#include "core/thread_group_aggregator.h"
#include "core/watch_set.h"

namespace exitwatch {
namespace {

constexpr uint64_t kMs = 1'000'000;

// ---- datagrams

std::vector<uint8_t> ExitDatagram(int32_t pid, int32_t tgid, int32_t code, int32_t parent) {
  std::vector<uint8_t> bytes(wire::kDatagramBytes);
  const auto put = [&](uint32_t offset, auto value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
  };
  put(wire::kNetlinkLength, wire::kDatagramBytes);
  put(wire::kNetlinkType, uint16_t{3});
  put(wire::kConnectorIdx, 1u);
  put(wire::kConnectorVal, 1u);
  put(wire::kConnectorLength, uint16_t{40});
  put(wire::kWhat, kProcEventExit);
  put(wire::kTimestamp, uint64_t{123456789012345});
  put(wire::kExitPid, pid);
  put(wire::kExitTgid, tgid);
  put(wire::kExitCode, code);
  put(wire::kExitParentTgid, parent);
  return bytes;
}

void AWholeDatagramIsRead() {
  const std::vector<uint8_t> bytes = ExitDatagram(12, 10, 0x700, 3);
  ProcEvent event;
  CHECK(ParseProcEvent(bytes.data(), bytes.size(), &event));
  CHECK_EQUAL(event.what, kProcEventExit);
  CHECK_EQUAL(event.timestamp_ns, 123456789012345u);
  CHECK_EQUAL(event.pid, 12);
  CHECK_EQUAL(event.tgid, 10);
  CHECK_EQUAL(event.exit_code, 0x700);
  CHECK_EQUAL(event.parent_tgid, 3);
}

void NoPartOfADatagramIsTakenForAWhole() {
  const std::vector<uint8_t> whole = ExitDatagram(12, 10, 0x700, 3);
  for (size_t size = 0; size < whole.size(); size++) {
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<long>(size));
    ProcEvent event;
    CHECK(!ParseProcEvent(part.data(), part.size(), &event));
  }
}

void LengthsThatLieAreRefused() {
  ProcEvent event;
  for (const uint32_t offset : {wire::kNetlinkLength, wire::kConnectorLength}) {
    for (const uint16_t length : {0, 15, 35, 39, 77, 0xffff}) {
      std::vector<uint8_t> bytes = ExitDatagram(12, 10, 0, 3);
      std::memcpy(bytes.data() + offset, &length, sizeof(length));
      CHECK(!ParseProcEvent(bytes.data(), bytes.size(), &event));
    }
  }
}

void ImpossibleThreadsAndCodesAreRefused() {
  ProcEvent event;
  for (const auto& bytes :
       {ExitDatagram(0, 10, 0, 3), ExitDatagram(12, 0, 0, 3), ExitDatagram(-1, 10, 0, 3),
        ExitDatagram(12, 10, -1, 3), ExitDatagram(12, 10, 0x10000, 3)}) {
    CHECK(!ParseProcEvent(bytes.data(), bytes.size(), &event));
  }
}

void AnyBytesAreReadSafely() {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; i++) {
    std::vector<uint8_t> bytes = ExitDatagram(12, 10, 0x700, 3);
    bytes.resize(random() % 100);
    for (uint8_t& byte : bytes) {
      if (random() % 8 == 0) byte = static_cast<uint8_t>(random());
    }
    ProcEvent event;
    ParseProcEvent(bytes.data(), bytes.size(), &event);
  }
}

// ---- /proc/PID/stat

std::string StatLine(const std::string& name, const std::string& exit_code = "1792") {
  std::string line = "77 (" + name + ") Z 5 77 77 0 -1 4194560";
  for (int field = 10; field <= 19; field++) line += " " + std::to_string(field);
  line += " 2 0 987654";  // threads, itrealvalue, start
  for (int field = 23; field <= 51; field++) line += " -1";
  return line + " " + exit_code + "\n";
}

void AStatLineIsRead() {
  const std::string line = StatLine("a) b (c");
  ProcStat stat;
  CHECK(ParseProcStat(line.data(), line.size(), &stat));
  CHECK_EQUAL(stat.pid, 77);
  CHECK_EQUAL(std::string(stat.name) == "a) b (c", true);
  CHECK_EQUAL(stat.state, 'Z');
  CHECK_EQUAL(stat.parent_pid, 5);
  CHECK_EQUAL(stat.flags, 4194560u);
  CHECK_EQUAL(stat.threads, 2);
  CHECK_EQUAL(stat.start_ticks, 987654u);
  CHECK_EQUAL(stat.exit_code, 1792);
  CHECK(stat.IsLeaderGone());
}

void NoPartOfAStatLineIsTakenForAWhole() {
  const std::string line = StatLine("name", "0");
  ProcStat stat;
  for (size_t size = 0; size + 2 < line.size(); size++) {
    CHECK(!ParseProcStat(std::string(line, 0, size).c_str(), size, &stat));
  }
  for (const char* bad : {"", ")", "(", "1 (", "1 ()", "1 ) (", "x (n) S 1", "1 (n)S"}) {
    CHECK(!ParseProcStat(bad, std::strlen(bad), &stat));
  }
}

// ---- thread groups

// Processes as a test sets them, on a clock that it moves.
class FakeWitness : public ProcessWitness {
 public:
  struct Process {
    Life life = Life::kGone;
    ProcStat stat;
    bool may_read = true;
    std::optional<int32_t> exit_status;
    uint64_t inode = 0;
  };

  Life Open(int32_t pid, Handle* handle) override {
    const Life life = processes[pid].life;
    if (life == Life::kAlive || life == Life::kDead) {
      *handle = pid;
      open++;
    }
    return life;
  }
  void Close(Handle handle) override {
    if (handle != kNoHandle) open--;
  }
  uint64_t Inode(Handle handle) override { return processes[handle].inode; }
  Life Look(Handle handle) override { return processes[handle].life; }
  bool Hold(Handle, int32_t) override { return can_hold; }
  bool ReadStat(int32_t pid, ProcStat* stat) override {
    *stat = processes[pid].stat;
    stat->pid = pid;
    return processes[pid].life != Life::kGone;
  }
  std::optional<uint32_t> ReadUid(int32_t) override { return 0; }
  std::optional<int32_t> ReadExitStatus(Handle handle) override {
    return processes[handle].exit_status;
  }
  bool MayReadExitCode(int32_t pid) override { return processes[pid].may_read; }
  uint64_t Now() override { return now_ns; }
  uint64_t TickOf(uint64_t timestamp_ns) override { return timestamp_ns / (10 * kMs); }

  std::map<int32_t, Process> processes;
  uint64_t now_ns = 1000 * kMs;
  int open = 0;
  bool can_hold = true;
};

struct End {
  int32_t pid;
  int32_t status;  // -1: unknown
  int core;        // -1: unknown
  uint64_t ended_ns;
  bool by_kernel;
};

// As a vector, but one that a failing test can read beyond.
class Ends {
 public:
  void push_back(const End& end) { ends_.push_back(end); }
  size_t size() const { return ends_.size(); }
  End operator[](size_t i) const { return i < ends_.size() ? ends_[i] : End{-2, -2, -2, 0, false}; }

 private:
  std::vector<End> ends_;
};

class Scene {
 public:
  Scene()
      : aggregator(
            witness,
            [this](const ThreadGroup& group) {
              const std::optional<bool> core = group.CoreDumped();
              ends.push_back({group.pid, group.Status().value_or(-1), core ? (*core ? 1 : 0) : -1,
                              group.ended_ns, group.ended_by_kernel});
            },
            [this](int32_t, uint64_t) { return expected_inode; }) {}

  void Exit(int32_t pid, int32_t tgid, int32_t code, int32_t parent = 5) {
    ProcEvent event;
    event.what = kProcEventExit;
    event.timestamp_ns = witness.now_ns;
    event.pid = pid;
    event.tgid = tgid;
    event.exit_code = code;
    event.parent_tgid = pid == tgid ? parent : 0;
    aggregator.OnExit(event);
  }

  void Exec(int32_t pid) {
    ProcEvent event;
    event.what = kProcEventExec;
    event.timestamp_ns = witness.now_ns;
    event.pid = pid;
    event.tgid = pid;
    aggregator.OnExec(event);
  }

  void Coredump(int32_t pid, int32_t tgid) {
    ProcEvent event;
    event.what = kProcEventCoredump;
    event.timestamp_ns = witness.now_ns;
    event.pid = pid;
    event.tgid = tgid;
    aggregator.OnCoredump(event);
  }

  // Time passes, and the stream is read to its end again and again.
  void Pass(uint64_t ns) {
    for (const uint64_t end_ns = witness.now_ns + ns; witness.now_ns < end_ns;) {
      aggregator.Settle(witness.now_ns);
      witness.now_ns += kMs / 10;
    }
    aggregator.Settle(witness.now_ns);
  }

  FakeWitness::Process& Process(int32_t pid, ProcessWitness::Life life, char state = 'S',
                                int32_t threads = 1, int32_t exit_code = 0) {
    FakeWitness::Process& process = witness.processes[pid];
    process.life = life;
    process.stat.state = state;
    process.stat.threads = threads;
    process.stat.exit_code = exit_code;
    process.stat.start_ticks = 10;
    process.stat.parent_pid = 5;
    return process;
  }

  FakeWitness witness;
  uint64_t expected_inode = 0;
  Ends ends;
  ThreadGroupAggregator aggregator;
};

using Life = ProcessWitness::Life;

void AReleasedProcessEndsAtOnce() {
  Scene scene;
  scene.Exit(10, 10, 0x700, 0);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK(scene.ends[0].by_kernel);
}

void AReapedProcessEndsWhenTheStreamHasPassedTheProof() {
  Scene scene;
  scene.Exit(10, 10, 0x700);
  scene.aggregator.Settle(scene.witness.now_ns);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

void AFirstThreadsZeroWaitsForTheLastThreadsCode() {
  Scene scene;
  scene.Exit(10, 10, 0);  // and reaped already: the event of the last thread was preempted
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(11, 10, 0x700);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

void AProcessWithoutItsFirstThreadLives() {
  Scene scene;
  scene.Process(10, Life::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(1000 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  CHECK_EQUAL(scene.witness.open, 1);
  scene.Exit(11, 10, 0x700);
  const uint64_t dead_ns = scene.witness.now_ns;
  scene.Process(10, Life::kDead, 'Z', 1, 0x700);
  scene.aggregator.OnHandleReady(10, dead_ns - kMs);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK_EQUAL(scene.ends[0].ended_ns, dead_ns);
  CHECK_EQUAL(scene.witness.open, 0);
}

void AHandleTellsWhatNoEventTold() {
  Scene scene;
  scene.Process(10, Life::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0x500);
  scene.Pass(10 * kMs);
  scene.Process(10, Life::kGone).exit_status = 0xa00;
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0xa00);
  CHECK(!scene.ends[0].by_kernel);
}

void ACodeThatIsNotTheGroupsWasNotTheLastThreads() {
  Scene scene;
  scene.Process(10, Life::kAlive, 'Z', 3);
  scene.Exit(10, 10, 0x500);
  scene.Pass(10 * kMs);
  scene.Exit(11, 10, 0x900);
  scene.Process(10, Life::kGone).exit_status = 0xa00;
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0xa00);
  CHECK(!scene.ends[0].by_kernel);
}

void ATracedThreadsProcessEndsByItsHandle() {
  Scene scene;
  scene.Process(10, Life::kAlive, 'S', 2).stat.start_ticks = 10;
  ProcEvent event;
  event.timestamp_ns = scene.witness.now_ns;
  event.tgid = 10;
  event.exit_code = 0x8b;
  CHECK(scene.aggregator.OnTracedExit(event, true));
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Process(10, Life::kGone).exit_status = 0xb;  // a pidfd does not know of the core
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x8b);
  CHECK_EQUAL(scene.ends[0].core, 1);
}

void ATracedThreadThatIsGoneAlreadyHasToldTheStatus() {
  Scene scene;
  ProcEvent event;
  event.timestamp_ns = scene.witness.now_ns;
  event.tgid = 10;
  event.exit_code = 0x700;
  CHECK(scene.aggregator.OnTracedExit(event, false));  // others went on
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  CHECK(scene.aggregator.OnTracedExit(event, true));
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

void WhatOthersToldIsNotToldAgain() {
  Scene scene;
  scene.Process(10, Life::kAlive, 'Z', 2).inode = 7;
  scene.aggregator.Adopt({10, 10, 7}, 10, scene.witness.now_ns, ThreadGroup::Cause::kFound);
  scene.aggregator.Supersede({10, 11, 8});  // another process
  CHECK(scene.aggregator.IsEnding(10));
  scene.aggregator.Supersede({10, 10, 7});
  CHECK(!scene.aggregator.IsEnding(10));
}

void AnEndIsRememberedByItsIdentity() {
  EndedGroups ended(2);
  ended.Add({10, 100, 7, 0x1000});
  CHECK(ended.Contains({10, 100, 0, 0x1000}));
  CHECK(ended.Contains({10, 0, 7, 0}));
  CHECK(!ended.Contains({10, 100, 8, 0}));
  CHECK(!ended.Contains({10, 100, 0, 0x2000}));
  CHECK(!ended.Contains({11, 100, 7, 0x1000}));
  ended.Add({11, 100});
  ended.Add({12, 100});
  CHECK(!ended.Contains({10, 100, 7, 0x1000}));
  CHECK(ended.Contains({12, 100}));
}

// ---- BTF

// As the kernel would describe
//   struct task { int pid; struct { char name[16]; long flag : 1; }; const struct task *next; };
class BtfBytes {
 public:
  BtfBytes() {
    Type("int", 1, 0, 4), Word(0x01000020);         // 1
    Type("char", 1, 0, 1), Word(8);                 // 2
    Type("", 3, 0, 0), Word(2), Word(1), Word(16);  // 3: char[16]
    Type("", 4, 2, 24, true);                       // 4
    Member("name", 3, 0), Member("flag", 1, 1 << 24 | 128);
    Type("task", 4, 3, 40);  // 5
    Member("pid", 1, 0), Member("", 4, 64), Member("next", 7, 256);
    Type("", 10, 0, 5);     // 6: const struct task
    Type("", 2, 0, 6);      // 7: its pointer
    Type("loop", 8, 0, 8);  // 8: a name of itself
  }

  std::vector<uint8_t> Bytes() const {
    std::vector<uint8_t> bytes = {0x9f, 0xeb, 1, 0};
    const auto put = [&](uint32_t word) {
      const auto* from = reinterpret_cast<const uint8_t*>(&word);
      bytes.insert(bytes.end(), from, from + 4);
    };
    const auto types = static_cast<uint32_t>(words_.size() * 4);
    for (const uint32_t word : {24u, 0u, types, types, static_cast<uint32_t>(names_.size())}) {
      put(word);
    }
    for (const uint32_t word : words_) put(word);
    bytes.insert(bytes.end(), names_.begin(), names_.end());
    return bytes;
  }

 private:
  void Word(uint32_t word) { words_.push_back(word); }
  uint32_t Name(const std::string& name) {
    if (name.empty()) return 0;
    const auto offset = static_cast<uint32_t>(names_.size());
    names_ += name + '\0';
    return offset;
  }
  void Type(const std::string& name, uint32_t kind, uint32_t count, uint32_t size_or_type,
            bool has_bit_fields = false) {
    Word(Name(name)), Word(kind << 24 | count | uint32_t{has_bit_fields} << 31);
    Word(size_or_type);
  }
  void Member(const std::string& name, uint32_t type, uint32_t place) {
    Word(Name(name)), Word(type), Word(place);
  }

  std::vector<uint32_t> words_;
  std::string names_ = std::string(1, '\0');
};

void MembersAreFoundAlsoInStructuresWithoutAName() {
  const std::vector<uint8_t> bytes = BtfBytes().Bytes();
  const std::optional<Btf> btf = Btf::Parse(bytes.data(), bytes.size());
  CHECK(btf);
  CHECK_EQUAL(btf->Find("task", "pid")->offset, 0u);
  CHECK_EQUAL(btf->Find("task", "pid")->size, 4u);
  CHECK_EQUAL(btf->Find("task", "name")->offset, 8u);
  CHECK_EQUAL(btf->Find("task", "name")->size, 16u);
  CHECK_EQUAL(btf->Find("task", "next")->offset, 32u);
  CHECK_EQUAL(btf->Find("task", "next")->size, 8u);
  CHECK(!btf->Find("task", "flag"));  // a bit field
  CHECK(!btf->Find("task", "none"));
  CHECK(!btf->Find("int", "pid"));
}

void AnyBtfIsReadSafely() {
  const std::vector<uint8_t> whole = BtfBytes().Bytes();
  std::mt19937 random(1);
  for (int i = 0; i < 50'000; i++) {
    std::vector<uint8_t> bytes = whole;
    for (uint8_t& byte : bytes) {
      if (random() % 40 == 0) byte = static_cast<uint8_t>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    bytes.shrink_to_fit();
    const std::optional<Btf> btf = Btf::Parse(bytes.data(), bytes.size());
    if (!btf) continue;
    for (const char* member : {"pid", "name", "next", "flag", ""}) btf->Find("task", member);
    const char* missing = "";
    ResolveKernelLayout(*btf, &missing);
  }
}

void ALayoutNamesWhatIsMissing() {
  const std::vector<uint8_t> bytes = BtfBytes().Bytes();
  const char* missing = "";
  CHECK(!ResolveKernelLayout(*Btf::Parse(bytes.data(), bytes.size()), &missing));
  CHECK(std::string(missing) == "flags");
}

// ---- eBPF

void JumpsOfAProgramGoWhereTheirLabelsAre() {
  BpfAssembler code;
  const BpfAssembler::Label end = code.NewLabel();
  const BpfAssembler::Label again = code.NewLabel();
  code.Bind(again);
  code.JumpIf32(BPF_JEQ, BpfAssembler::kR1, 7, end);
  code.SetMap(BpfAssembler::kR1, 3);  // takes two places
  code.Jump(again);
  code.Bind(end);
  code.Exit();
  const std::vector<bpf_insn> program = code.Finish();
  CHECK_EQUAL(program.size(), 5u);
  CHECK_EQUAL(program[0].off, 3);
  CHECK_EQUAL(program[3].off, -4);
}

void AnExecByAnotherThreadIsNoDeath() {
  Scene scene;
  scene.Process(10, Life::kAlive, 'S', 1);
  scene.witness.processes[10].stat.start_ticks = 10;
  scene.Exit(10, 10, 0);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Process(10, Life::kGone);
  scene.Exit(10, 10, 0x400);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x400);
}

void AnExecThatIsReadLateIsNoDeathEither() {
  Scene scene;  // the program is over and reaped by the time that the first exit is read
  scene.Exit(10, 10, 0);
  scene.Pass(5 * kMs);
  scene.Exec(10);
  scene.witness.now_ns += 500 * kMs;
  scene.Exit(10, 10, 0x400);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x400);
}

void AnExecEndsTheHoldOfAHandle() {
  Scene scene;
  scene.Process(10, Life::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.witness.open, 1);
  scene.Process(10, Life::kAlive);
  scene.Exec(10);
  CHECK_EQUAL(scene.witness.open, 0);
  scene.Exit(10, 10, 0x400, 0);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x400);
}

void TwoExitsOfOnePidWithoutAnExecAreTwoProcesses() {
  Scene scene;
  scene.Exit(10, 10, 0);
  scene.Exit(10, 10, 0x500);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[0].status, 0);
  CHECK_EQUAL(scene.ends[1].status, 0x500);
}

void AProcessOfTheSameTickIsTakenForANewOneWhenNoExecComes() {
  Scene scene;
  scene.Process(10, Life::kAlive).stat.start_ticks = scene.witness.TickOf(scene.witness.now_ns);
  scene.Exit(10, 10, 0);
  scene.Pass(1000 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);  // an exec may be under way
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
}

void AZombieOfTheSameTickMayBeALaterProcesss() {
  Scene scene;
  scene.Process(10, Life::kDead, 'Z', 1, 0x100).stat.start_ticks =
      scene.witness.TickOf(scene.witness.now_ns);
  scene.Exit(10, 10, 0);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(10, 10, 0x100);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[0].status, 0);
  CHECK_EQUAL(scene.ends[1].status, 0x100);
}

void AProcessWithAnotherInodeIsAnother() {
  Scene scene;
  scene.expected_inode = 77;
  scene.Process(10, Life::kDead, 'Z', 1, 0x900).inode = 78;
  scene.Exit(10, 10, 0x500);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x500);
  scene.Process(20, Life::kDead, 'Z', 1, 0x900).inode = 77;
  scene.Exit(20, 20, 0);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0x900);
}

void AStrangerWithThePidMeansThatOursIsDead() {
  Scene scene;
  scene.Process(10, Life::kAlive).stat.start_ticks = 1'000'000;
  scene.Exit(10, 10, 9);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 9);
  CHECK_EQUAL(scene.witness.open, 0);
}

void ADumpByAnyThreadIsTheGroupsDump() {
  Scene scene;
  scene.Coredump(11, 10);
  scene.Exit(10, 10, 0xb);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);  // the thread that dumps has not ended yet
  scene.Exit(11, 10, 0x8b);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x8b);
  CHECK_EQUAL(scene.ends[0].core, 1);
}

void AnAnnouncedDumpThatWasNotWrittenIsNone() {
  Scene scene;
  scene.Coredump(10, 10);
  scene.Exit(10, 10, 0xb);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends[0].core, 0);
  // Without the announcement nobody can know: it may have come before we listened.
  scene.Exit(20, 20, 0xb);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends[1].core, -1);
  scene.Exit(30, 30, 9);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends[2].core, 0);
}

void AThreadsOwnOldCodeIsNotTheProcesss() {
  Scene scene;
  scene.Process(10, Life::kAlive);
  scene.Exit(11, 10, 31);  // seccomp killed one thread, long ago
  scene.Pass(5000 * kMs);
  scene.Process(10, Life::kGone);
  scene.Exit(10, 10, 0);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0);
}

void ALateThreadDoesNotColorTheNextProcess() {
  Scene scene;
  scene.Exit(10, 10, 9);
  scene.Pass(kMs);
  scene.Exit(11, 10, 9);  // of the same group, which was told
  scene.Pass(1000 * kMs);
  scene.Exit(10, 10, 0);  // a new process
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0);
  CHECK_EQUAL(scene.aggregator.NextDeadline(), UINT64_MAX);
}

void AZombieThatWasNeverSeenToEndWaitsForItsStatus() {
  Scene scene;
  scene.Process(10, Life::kDead, 'Z', 1, 0).may_read = false;
  scene.witness.open++;
  scene.aggregator.Adopt({10}, 10, scene.witness.now_ns, ThreadGroup::Cause::kFound);
  scene.Pass(500 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Process(10, Life::kGone).exit_status = 0x900;
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns);
  scene.Pass(30 * kMs);  // its own exit could be on its way
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x900);

  scene.Process(20, Life::kDead, 'Z', 1, 0).may_read = false;
  scene.witness.open++;
  scene.aggregator.Adopt({20}, 20, scene.witness.now_ns, ThreadGroup::Cause::kFound);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, -1);
  CHECK_EQUAL(scene.witness.open, 0);
}

void WhereTheKernelCannotWakeUsHandlesArePolled() {
  Scene scene;
  scene.witness.can_hold = false;
  scene.Process(10, Life::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(50 * kMs);
  scene.Process(10, Life::kDead, 'Z', 1, 0x700);
  scene.Pass(50 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

void APresumedEndIsUnknownUnlessAnEventComes() {
  Scene scene;
  scene.aggregator.Presume({10}, scene.witness.now_ns);
  scene.aggregator.Presume({20}, scene.witness.now_ns);
  scene.Exit(20, 20, 0x300);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[0].status, -1);
  CHECK_EQUAL(scene.ends[1].status, 0x300);
}

// ---- the queue

Record ExitRecord(double time_ns, uint32_t flags = Record::kLossless) {
  Record record;
  record.kind = Record::kExit;
  record.time_ns = time_ns;
  record.from_ns = time_ns;
  record.flags = flags;
  return record;
}

void AFullQueueTellsItsLossInPlace() {
  RecordQueue queue(3);
  for (int i = 1; i <= 7; i++) queue.Push({ExitRecord(i)});
  queue.Push({ExitRecord(8, Record::kWatched | Record::kLossless)});
  Record records[16];
  CHECK_EQUAL(queue.Take(records, 2), 2u);
  queue.Push({ExitRecord(9)});
  CHECK_EQUAL(queue.Take(records + 2, 14), 4u);
  const int kinds[] = {Record::kExit, Record::kExit, Record::kExit,
                       Record::kGap,  Record::kExit, Record::kGap};
  for (int i = 0; i < 6; i++) CHECK_EQUAL(records[i].kind, kinds[i]);
  CHECK_EQUAL(records[3].count, 4);
  CHECK_EQUAL(records[3].from_ns, 4);
  CHECK_EQUAL(records[3].time_ns, 7);
  CHECK_EQUAL(records[4].time_ns, 8);
  CHECK_EQUAL(records[5].count, 1);  // 9 came when there was no room yet
  const RecordQueue::Counts counts = queue.counts();
  CHECK_EQUAL(counts.received, counts.delivered + counts.lost);
  CHECK_EQUAL(counts.gaps, 2u);
}

void WhoLivedThroughAGapIsNotLossless() {
  RecordQueue queue(1);
  queue.Push({ExitRecord(1), ExitRecord(2)});
  Record records[4];
  CHECK_EQUAL(queue.Take(records, 4), 2u);
  Record older = ExitRecord(5);
  older.from_ns = 1;
  queue.Push({older});
  CHECK_EQUAL(queue.Take(records, 4), 1u);
  CHECK_EQUAL(records[0].flags & Record::kLossless, 0u);
  queue.Push({ExitRecord(6)});
  CHECK_EQUAL(queue.Take(records, 4), 1u);
  CHECK(records[0].flags & Record::kLossless);
}

// ---- watches

void TheWatchOfAReusedPidIsNotTaken() {
  WatchSet watches;
  Watch watch;
  watch.pid = 10;
  watch.process.start_ticks = 100;
  watch.process.inode = 7;
  watch.since_ns = 100;
  watches.Add(watch);
  watch.process.start_ticks = 200;
  watch.process.inode = 8;
  watch.since_ns = 200;
  watches.Add(watch);
  CHECK(!watches.Take({10, 0, 9, 0}, 300));  // neither's inode
  CHECK(!watches.Take({10, 0, 0, 0}, 50));   // ended before either was watched
  CHECK_EQUAL(watches.InodeAt(10, 150), 7u);
  CHECK_EQUAL(watches.InodeAt(10, 50), 0u);
  CHECK_EQUAL(watches.Take({10, 0, 0, 0}, 150)->process.inode, 7u);
  CHECK_EQUAL(watches.Take({10, 0, 8, 0}, 150)->process.inode, 8u);
  CHECK(!watches.Contains(10));
}

}  // namespace
}  // namespace exitwatch

int main() {
  using namespace exitwatch;
  AWholeDatagramIsRead();
  NoPartOfADatagramIsTakenForAWhole();
  LengthsThatLieAreRefused();
  ImpossibleThreadsAndCodesAreRefused();
  AnyBytesAreReadSafely();
  AStatLineIsRead();
  NoPartOfAStatLineIsTakenForAWhole();
  AReleasedProcessEndsAtOnce();
  AReapedProcessEndsWhenTheStreamHasPassedTheProof();
  AFirstThreadsZeroWaitsForTheLastThreadsCode();
  AProcessWithoutItsFirstThreadLives();
  AHandleTellsWhatNoEventTold();
  ACodeThatIsNotTheGroupsWasNotTheLastThreads();
  ATracedThreadsProcessEndsByItsHandle();
  ATracedThreadThatIsGoneAlreadyHasToldTheStatus();
  WhatOthersToldIsNotToldAgain();
  AnEndIsRememberedByItsIdentity();
  MembersAreFoundAlsoInStructuresWithoutAName();
  AnyBtfIsReadSafely();
  ALayoutNamesWhatIsMissing();
  JumpsOfAProgramGoWhereTheirLabelsAre();
  AnExecByAnotherThreadIsNoDeath();
  AnExecThatIsReadLateIsNoDeathEither();
  AnExecEndsTheHoldOfAHandle();
  TwoExitsOfOnePidWithoutAnExecAreTwoProcesses();
  AProcessOfTheSameTickIsTakenForANewOneWhenNoExecComes();
  AZombieOfTheSameTickMayBeALaterProcesss();
  AProcessWithAnotherInodeIsAnother();
  AStrangerWithThePidMeansThatOursIsDead();
  ADumpByAnyThreadIsTheGroupsDump();
  AnAnnouncedDumpThatWasNotWrittenIsNone();
  AThreadsOwnOldCodeIsNotTheProcesss();
  ALateThreadDoesNotColorTheNextProcess();
  AZombieThatWasNeverSeenToEndWaitsForItsStatus();
  WhereTheKernelCannotWakeUsHandlesArePolled();
  APresumedEndIsUnknownUnlessAnEventComes();
  AFullQueueTellsItsLossInPlace();
  WhoLivedThroughAGapIsNotLossless();
  TheWatchOfAReusedPidIsNotTaken();
  std::printf("%d wrong\n", test::failures);
  return test::failures == 0 ? 0 : 1;
}
