#include <map>
#include <vector>

#include "check.h"
#include "core/groups/thread_group_aggregator.h"
#include "fake_witness.h"
#include "tests.h"

namespace exitwatch {

namespace {

using test::FakeWitness;

constexpr uint64_t kMs = 1'000'000;

struct End {
  int32_t pid;
  int32_t status;  // -1: unknown
  int core;        // -1: unknown
  uint64_t ended_ns;
  bool by_kernel;
  uint64_t latest_ns;  // the end may be as late as this
  uint64_t inode;
};

// A vector that a failing test may read beyond its end.
class Ends {
 public:
  void push_back(const End& end) { ends_.push_back(end); }
  size_t size() const { return ends_.size(); }
  End operator[](size_t i) const {
    return i < ends_.size() ? ends_[i] : End{-2, -2, -2, 0, false, 0, 0};
  }

 private:
  std::vector<End> ends_;
};

class Scene {
 public:
  Scene()
      : aggregator(witness, 1'000'000'000, [this](const ThreadGroup& group) {
          const std::optional<bool> core = group.CoreDumped();
          ends.push_back({group.pid, group.Status().value_or(-1), core ? (*core ? 1 : 0) : -1,
                          group.times.ended_ns, group.times.ended_by_kernel,
                          group.times.ended_ns + group.times.uncertainty_ns,
                          group.Identity().inode});
        }) {}

  void Exit(int32_t pid, int32_t tgid, int32_t code, int32_t parent = 5) {
    ProcEvent event;
    event.what = kProcEventExit;
    event.timestamp_ns = witness.now_ns;
    event.pid = pid;
    event.tgid = tgid;
    event.exit_code = code;
    event.parent_tgid = pid == tgid ? parent : 0;
    EventOwner owner;
    if (expected_inode != 0) {
      owner = {EventOwner::Certainty::kKnown, {tgid, 0, expected_inode, 0, 0}};
    }
    aggregator.OnExit(event, owner);
  }

  void Fork(int32_t pid, int32_t tgid) {
    ProcEvent event;
    event.what = kProcEventFork;
    event.timestamp_ns = witness.now_ns;
    event.pid = pid;
    event.tgid = tgid;
    aggregator.OnFork(event);
  }

  void Exec(int32_t pid) { Exec(pid, witness.now_ns); }

  void Exec(int32_t pid, uint64_t timestamp_ns) {
    ProcEvent event;
    event.what = kProcEventExec;
    event.timestamp_ns = timestamp_ns;
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

  // Lets time pass while the stream is repeatedly read to its end.
  void Pass(uint64_t ns) {
    for (const uint64_t end_ns = witness.now_ns + ns; witness.now_ns < end_ns;) {
      aggregator.Settle(witness.now_ns);
      witness.now_ns += kMs / 10;
    }
    aggregator.Settle(witness.now_ns);
  }

  FakeWitness::Process& Process(int32_t pid, ProcessState life, char state = 'S',
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

  // A handle of a process that is dead by now, and whose pid may have been reused.
  void HoldPidfd(int32_t pid, uint64_t inode, ProcessState life, std::optional<int32_t> status,
                 ThreadGroup::Outstanding outstanding = ThreadGroup::Outstanding::kEvent) {
    const ProcessWitness::Handle handle = 100 + pid;
    FakeWitness::Process& process = Process(handle, life, 'Z');
    process.exit_status = status;
    process.inode = inode;
    witness.open++;
    aggregator.AdoptDead({pid, 10, inode, 0, 0}, handle, witness.now_ns - kMs,
                         ThreadGroup::Cause::kPidfd, outstanding);
  }

  FakeWitness witness;
  uint64_t expected_inode = 0;
  Ends ends;
  ThreadGroupAggregator aggregator;
};

void AReleasedProcessEndsAtOnce() {
  Scene scene;
  scene.Exit(10, 10, 0x700, 0);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK(scene.ends[0].by_kernel);
}

void AReapedProcessEndsOnceTheStreamIsReadPastTheProof() {
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
  scene.Exit(10, 10, 0);  // already reaped: the last thread was preempted before its event
  scene.Pass(900 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  CHECK(scene.aggregator.HasUnreported());
  scene.Exit(11, 10, 0x700);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

void AReleasedFirstThreadNeedNotHaveBeenTheLast() {
  Scene scene;
  scene.Exit(10, 10, 0, 0);  // preempted before its event; so is the last thread
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(11, 10, 0x700);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

void AFirstThreadsZeroIsTheStatusIfNothingElseComes() {
  Scene scene;
  for (const int32_t pid : {10, 20, 30}) {
    scene.Exit(pid, pid, 0);
    scene.Pass(10 * kMs);
  }
  scene.Pass(950 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Pass(60 * kMs);
  CHECK_EQUAL(scene.ends.size(), 3u);
  CHECK_EQUAL(scene.ends[0].pid, 10);
  CHECK_EQUAL(scene.ends[2].status, 0);
  CHECK_EQUAL(scene.aggregator.NextDeadline(), UINT64_MAX);
}

void AFirstThreadsZeroOfAWatchedProcessWaits() {
  Scene scene;
  scene.HoldPidfd(10, 77, ProcessState::kGone, {});  // a kernel whose pidfds have no exit status
  scene.Exit(10, 10, 0);
  scene.Pass(900 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(11, 10, 0x700);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK_EQUAL(scene.witness.open, 0);
}

void AHandleWithoutACoreBitWaitsForTheEvent() {
  Scene scene;
  scene.HoldPidfd(10, 77, ProcessState::kGone, 11);
  scene.Pass(900 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Coredump(10, 10);
  scene.Exit(10, 10, 11);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 11);
  CHECK_EQUAL(scene.ends[0].core, 0);
}

void AHandleEndsTheWaitForAnEvent() {
  Scene scene;
  scene.Exit(10, 10, 0);
  scene.Pass(100 * kMs);
  scene.HoldPidfd(10, 77, ProcessState::kGone, 0x700);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

// Either the first thread was ending by itself when another one ended the process, or it ended it.
void AHandleThatMayHoldTheFirstThreadsCodeIsNotTrusted() {
  Scene scene;
  for (const int32_t code : {0x700, 0x1f, 9}) {
    scene.Exit(11, 10, code);
    scene.Exit(10, 10, 0);
    scene.HoldPidfd(10, 77, ProcessState::kGone, 0);
    scene.Pass(30 * kMs);
  }
  CHECK_EQUAL(scene.ends.size(), 3u);
  for (size_t i = 0; i < 3; i++) CHECK_EQUAL(scene.ends[i].status, -1);
  scene.Exit(21, 20, 0x700);
  scene.Exit(20, 20, 0x300);
  scene.HoldPidfd(20, 78, ProcessState::kGone, 0x700);  // not the first thread's own code
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 4u);
  CHECK_EQUAL(scene.ends[3].status, 0x700);
  CHECK_EQUAL(scene.witness.open, 0);
}

void AHandleThatMayHoldTheFirstThreadsCodeWaitsForOthers() {
  Scene scene;
  scene.Exit(10, 10, 0);
  scene.HoldPidfd(10, 77, ProcessState::kGone, 0);
  scene.Pass(10 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(11, 10, 0x700);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, -1);
  scene.HoldPidfd(20, 78, ProcessState::kGone, 0);
  scene.Exit(21, 20, 0x700);  // the first thread's event is on its way
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  scene.Exit(20, 20, 0x300);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0);
}

void TheStatusOfAnEndingProcessIsReadWhileItLives() {
  Scene scene;
  const auto end = [&scene](int32_t shown, bool may_read, std::optional<int32_t> handle) {
    const size_t before = scene.ends.size();
    scene.Process(10, ProcessState::kAlive, 'R', 2, shown).may_read = may_read;
    scene.Exit(11, 10, 0x700);
    scene.Pass(kMs);
    scene.Process(10, ProcessState::kGone);
    scene.Exit(10, 10, 0);
    if (handle) scene.HoldPidfd(10, 77, ProcessState::kGone, handle);
    scene.Pass(1100 * kMs);
    CHECK_EQUAL(scene.ends.size(), before + 1);
    return scene.ends[before].status;
  };
  for (const std::optional<int32_t> handle :
       {std::optional<int32_t>(0), std::optional<int32_t>()}) {
    CHECK_EQUAL(end(0x700, true, handle), 0x700);
    CHECK_EQUAL(end(0, true, handle), 0);    // only that thread has ended
    CHECK_EQUAL(end(19, true, handle), -1);  // stopped by a signal
    CHECK_EQUAL(end(0, false, handle), -1);
    scene.witness.stat_tells_status = false;
    CHECK_EQUAL(end(0x700, true, handle), -1);
    scene.witness.stat_tells_status = true;
  }
  scene.Process(20, ProcessState::kAlive, 'R', 2);
  scene.Exit(21, 20, 0x700);
  scene.Pass(kMs);
  CHECK(!scene.aggregator.HasGroups());
}

void AHeldProcessIsCheckedForEachThread() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'Z', 3);
  scene.Exit(11, 10, 0x900);
  scene.Exit(10, 10, 0);  // in the same batch
  scene.Pass(10 * kMs);
  scene.Exit(12, 10, 0x700);  // and the last thread ends with 0
  scene.Pass(10 * kMs);
  scene.Process(10, ProcessState::kGone);
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0);
}

void WithoutAStreamThereIsNoWaitForEvents() {
  Scene scene;
  scene.Exit(10, 10, 0);
  scene.Pass(100 * kMs);
  scene.aggregator.SetStream(StreamKind::kNone);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
}

void AProcessWithoutItsFirstThreadLives() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(1000 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  CHECK_EQUAL(scene.witness.open, 1);
  scene.Exit(11, 10, 0x700);
  const uint64_t dead_ns = scene.witness.now_ns;
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0x700);
  scene.aggregator.OnHandleReady(10, dead_ns - kMs);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK_EQUAL(scene.ends[0].ended_ns, dead_ns);
  CHECK_EQUAL(scene.witness.open, 0);
}

void AHandleReportsAnEndWithoutAnEvent() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0x500);
  scene.Pass(10 * kMs);
  scene.Process(10, ProcessState::kGone).exit_status = 0xa00;
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0xa00);
  CHECK(!scene.ends[0].by_kernel);
}

void ACodeOtherThanTheGroupsWasNotTheLastThreads() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'Z', 3);
  scene.Exit(10, 10, 0x500);
  scene.Pass(10 * kMs);
  scene.Exit(11, 10, 0x900);
  scene.Process(10, ProcessState::kGone).exit_status = 0xa00;
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0xa00);
  CHECK(!scene.ends[0].by_kernel);
}

void TheHandleEndsTheProcessOfATracedThread() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'S', 2).stat.start_ticks = 10;
  ProcEvent event;
  event.timestamp_ns = scene.witness.now_ns;
  event.tgid = 10;
  event.exit_code = 0x8b;
  CHECK(scene.aggregator.OnPtracedExit(event, true));
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Process(10, ProcessState::kGone).exit_status = 0xb;  // a pidfd does not report core dumps
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x8b);
  CHECK_EQUAL(scene.ends[0].core, 1);
}

void ATracedThreadThatIsGoneHasReportedTheStatus() {
  Scene scene;
  ProcEvent event;
  event.timestamp_ns = scene.witness.now_ns;
  event.tgid = 10;
  event.exit_code = 0x700;
  CHECK(scene.aggregator.OnPtracedExit(event, false));  // other threads went on
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  CHECK(scene.aggregator.OnPtracedExit(event, true));
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

void AnEndFromAnotherSourceIsNotReportedAgain() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'Z', 2).inode = 7;
  scene.aggregator.Adopt({10, 10, 7}, 10, scene.witness.now_ns, ThreadGroup::Cause::kFound);
  scene.aggregator.Supersede({10, 11, 8});  // another process
  CHECK(scene.aggregator.IsEnding(10));
  scene.aggregator.Supersede({10, 10, 7});
  CHECK(!scene.aggregator.IsEnding(10));
}

void AnExecByAnotherThreadIsNotADeath() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'S', 1);
  scene.witness.processes[10].stat.start_ticks = 10;
  scene.Exit(10, 10, 0);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Process(10, ProcessState::kGone);
  scene.Exit(10, 10, 0x400);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x400);
}

void AnExecThatIsReadLateIsNotADeath() {
  Scene scene;  // the program is reaped before the first exit is read
  scene.Exit(10, 10, 0);
  const uint64_t exec_ns = scene.witness.now_ns;
  scene.Pass(5 * kMs);
  scene.Exec(10, exec_ns);
  scene.witness.now_ns += 500 * kMs;
  scene.Exit(10, 10, 0x400);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x400);
}

void AnExecEndsTheHoldOfAHandle() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.witness.open, 1);
  scene.Process(10, ProcessState::kAlive);
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

void AProcessOfTheSameTickIsNewIfNoExecComes() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive).stat.start_ticks =
      scene.witness.TickOf(scene.witness.now_ns);
  scene.Exit(10, 10, 0);
  scene.Pass(1000 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);  // an exec may be in progress
  scene.Pass(2100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
}

void AZombieOfTheSameTickMayBeALaterProcess() {
  Scene scene;
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0x100).stat.start_ticks =
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
  FakeWitness::Process& later = scene.Process(10, ProcessState::kDead, 'Z', 1, 0x900);
  later.inode = 78;
  later.stat.start_ticks = scene.witness.TickOf(scene.witness.now_ns);
  scene.Exit(10, 10, 0x500);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x500);
  scene.Process(20, ProcessState::kDead, 'Z', 1, 0x900).inode = 77;
  scene.Exit(20, 20, 0);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0x900);
}

void AnEventIsThatOfALaterProcessWhichWasThereBeforeIt() {
  Scene scene;
  scene.expected_inode = 77;
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0x900).inode = 78;
  scene.Exit(10, 10, 0x900);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].inode, 78u);
  CHECK_EQUAL(scene.ends[0].status, 0x900);
}

void IfBothMayHaveExitedWithThisCodeNobodyKnows() {
  Scene scene;
  scene.expected_inode = 77;
  FakeWitness::Process& later = scene.Process(10, ProcessState::kDead, 'Z', 1, 0x500);
  later.inode = 78;
  later.stat.start_ticks = scene.witness.TickOf(scene.witness.now_ns);
  scene.Exit(10, 10, 0x500);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].inode, 77u);
  CHECK_EQUAL(scene.ends[0].status, -1);
}

// The process that has the pid now has lost its first thread.
void ALateEventOfAReapedProcessLeavesTheNextOneAlone() {
  Scene scene;
  scene.expected_inode = 78;
  scene.Process(10, ProcessState::kAlive, 'Z', 2).inode = 78;
  scene.Exit(10, 10, 0x100);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.expected_inode = 77;
  scene.Exit(10, 10, 0x700, 0);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].inode, 77u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0x100).inode = 78;
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns);
  scene.Pass(50 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].inode, 78u);
  CHECK_EQUAL(scene.ends[1].status, 0x100);
}

void AnExecOfALaterProcessEndsNothing() {
  Scene scene;
  scene.expected_inode = 77;
  FakeWitness::Process& later = scene.Process(10, ProcessState::kAlive);
  later.inode = 78;
  later.stat.start_ticks = scene.witness.TickOf(scene.witness.now_ns);
  scene.Exit(10, 10, 0x500);
  scene.Exec(10);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].inode, 77u);
  CHECK_EQUAL(scene.ends[0].status, 0x500);
  scene.Exit(10, 10, 0);
  scene.Exec(10);
  scene.Exit(10, 10, 0x900);  // of the same process, or of the later one
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends[1].status, -1);
  const size_t count = scene.ends.size();
  scene.Exit(10, 10, 0);
  scene.Exec(10);
  scene.witness.now_ns += kMs;
  scene.Exit(10, 10, 0x900);  // of the later one, which had the pid before this exit
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends[count].status, 0);
}

// A thread's exec ended the first thread and then failed, or the pid was given on.
void ASignalSoonAfterTheFirstThreadsExitMayBeOfEither() {
  Scene scene;
  scene.expected_inode = 77;
  scene.Exit(10, 10, 0);
  scene.Exit(10, 10, 11);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends[0].inode, 77u);
  CHECK_EQUAL(scene.ends[0].status, -1);
}

void AProgramThatIsGoneSoonAfterAnExecReportsItsOwnExit() {
  Scene scene;
  scene.expected_inode = 77;
  scene.Process(10, ProcessState::kGone);
  scene.Exit(10, 10, 0);
  scene.Exec(10);
  scene.Exit(10, 10, 0x900);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x900);
  scene.Exit(10, 10, 0);
  scene.Exec(10);  // and nothing more
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, -1);
}

void AnotherProcessWithThePidProvesADeath() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive).stat.start_ticks = 1'000'000;
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
  CHECK_EQUAL(scene.ends.size(), 0u);  // the dumping thread has not ended yet
  scene.Exit(11, 10, 0x8b);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x8b);
  CHECK_EQUAL(scene.ends[0].core, 1);
}

void AThreadThatAnnouncedADumpMayBeLate() {
  Scene scene;
  scene.Coredump(10, 10);
  scene.Pass(500 * kMs);  // reaped by now
  CHECK(scene.aggregator.HasGroups());
  scene.Exit(10, 10, 11);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].core, 0);
  scene.Coredump(20, 20);  // it announced a dump, but its end never arrives
  scene.Pass(1100 * kMs);
  CHECK(!scene.aggregator.HasGroups());
}

void AnAnnouncedDumpThatWasNotWrittenDoesNotCount() {
  Scene scene;
  scene.Coredump(10, 10);
  scene.Exit(10, 10, 0xb);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends[0].core, 0);
  // Without an announcement the dump is unknown: it may have come before the reader listened.
  scene.Exit(20, 20, 0xb);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends[1].core, -1);
  scene.Exit(30, 30, 9);
  scene.Pass(5 * kMs);
  CHECK_EQUAL(scene.ends[2].core, 0);
}

void AnOldCodeOfAThreadIsNotTheProcessStatus() {
  Scene scene;
  scene.witness.stat_tells_status = false;
  scene.Process(10, ProcessState::kAlive);
  scene.Exit(11, 10, 31);  // seccomp killed one thread long before
  scene.Pass(5000 * kMs);
  scene.Process(10, ProcessState::kGone);
  scene.Exit(10, 10, 0);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0);
}

void ALateThreadDoesNotAffectTheNextProcess() {
  Scene scene;
  scene.Exit(10, 10, 9);
  scene.Pass(kMs);
  scene.Exit(11, 10, 9);  // of the same group, which was already reported
  scene.Pass(1000 * kMs);
  scene.Exit(10, 10, 0);  // a new process
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0);
  CHECK_EQUAL(scene.aggregator.NextDeadline(), UINT64_MAX);
}

void AZombieThatWasNeverSeenToEndWaitsForItsStatus() {
  Scene scene;
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0).may_read = false;
  scene.witness.open++;
  scene.aggregator.Adopt({10}, 10, scene.witness.now_ns, ThreadGroup::Cause::kFound);
  scene.Pass(500 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Process(10, ProcessState::kGone).exit_status = 0x900;
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns);
  scene.Pass(30 * kMs);  // its own exit event may still come
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x900);

  scene.Process(20, ProcessState::kDead, 'Z', 1, 0).may_read = false;
  scene.witness.open++;
  scene.aggregator.Adopt({20}, 20, scene.witness.now_ns, ThreadGroup::Cause::kFound);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, -1);
  CHECK_EQUAL(scene.witness.open, 0);
}

void HandlesArePolledIfTheKernelCannotWakeTheReader() {
  Scene scene;
  scene.witness.can_hold = false;
  scene.Process(10, ProcessState::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(50 * kMs);
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0x700);
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

void AGuardReportsAStatusWithoutAnEvent() {
  Scene scene;
  scene.Exit(10, 10, 0);  // the first thread; another one ended the process
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x700);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK_EQUAL(scene.witness.open, 0);
}

void AGuardWaitsForTheStream() {
  Scene scene;
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0xb);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(11, 10, 0x8b);
  scene.Exit(10, 10, 0xb);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x8b);
  CHECK_EQUAL(scene.ends[0].core, 1);
  CHECK(scene.ends[0].by_kernel);
}

void AGuardThatIsReadLateKeepsTheKernelsTimestamp() {
  Scene scene;
  scene.Exit(10, 10, 0x700);
  scene.witness.now_ns += 5 * kMs;  // the reader had to wait for a CPU
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x700);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK(scene.ends[0].by_kernel);
}

void AVeryLateEventIsNotReportedAgain() {
  Scene scene;
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x700);
  scene.Pass(500 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  scene.Exit(10, 10, 0x700, 0);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  scene.Exit(10, 10, 0x100, 0);  // from the next process
  CHECK_EQUAL(scene.ends.size(), 2u);
}

void AZombiesEventEndsTheWaitForItsReaping() {
  Scene scene;
  scene.Process(10, ProcessState::kDead, 'Z').may_read = false;
  scene.HoldPidfd(10, 7, ProcessState::kDead, {});
  scene.Exit(10, 10, 0x700);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

using Outstanding = ThreadGroup::Outstanding;

void AGuardWithoutACoreBitWaitsForTheRecord() {
  Scene scene;
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0xb, Outstanding::kRecord);
  scene.Pass(4000 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  CHECK(scene.aggregator.AwaitsRecord());
  scene.aggregator.Supersede({10, 10, 7, 0, 0});  // the record reports it
  scene.Pass(4000 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  CHECK(!scene.aggregator.AwaitsRecord());
  CHECK_EQUAL(scene.witness.open, 0);
}

void ACodeThatMayBeTheFirstThreadsWaitsForTheRecord() {
  for (const int32_t code : {0, 0x500, 31}) {  // seccomp may end one thread with SIGSYS
    Scene scene;
    scene.HoldPidfd(10, 7, ProcessState::kGone, code, Outstanding::kRecord);
    scene.Pass(4000 * kMs);  // another thread ended it, and lost its CPU before it wrote the record
    CHECK_EQUAL(scene.ends.size(), 0u);
    CHECK(scene.aggregator.AwaitsRecord());
    scene.aggregator.Supersede({10, 10, 7, 0, 0});
    scene.Pass(4000 * kMs);
    CHECK_EQUAL(scene.ends.size(), 0u);
    CHECK_EQUAL(scene.witness.open, 0);
  }
}

void TheWaitForARecordHasALimit() {
  Scene scene;
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0xb, Outstanding::kRecord);
  scene.HoldPidfd(20, 8, ProcessState::kGone, {}, Outstanding::kRecord);  // before Linux 6.15
  scene.Pass(4900 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Pass(200 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[0].status, 0xb);
  CHECK_EQUAL(scene.ends[0].core, -1);
  CHECK_EQUAL(scene.ends[1].status, -1);
  CHECK_EQUAL(scene.aggregator.NextDeadline(), UINT64_MAX);
}

void ALateReaderReadsTheRecordFirst() {
  Scene scene;
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0xb, Outstanding::kRecord);
  const uint64_t read_ns = scene.witness.now_ns;
  scene.witness.now_ns += 60'000 * kMs;
  scene.aggregator.Settle(read_ns);  // the stream has been read up to here
  CHECK_EQUAL(scene.ends.size(), 0u);
}

void AnEndThatNeedsNoRecordIsReportedAtOnce() {
  Scene scene;
  // A zombie's status is the group's.
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0x700);
  scene.HoldPidfd(10, 7, ProcessState::kDead, {}, Outstanding::kRecord);
  scene.witness.processes[110].stat.exit_code = 0x700;
  scene.HoldPidfd(20, 8, ProcessState::kGone, 9, Outstanding::kRecord);  // SIGKILL never dumps core
  scene.HoldPidfd(30, 9, ProcessState::kGone, 0x8b,
                  Outstanding::kRecord);  // the first thread dumped
  // The status of a zombie contains the core bit.
  scene.Process(40, ProcessState::kDead, 'Z', 1, 0xb);
  scene.HoldPidfd(40, 11, ProcessState::kDead, {}, Outstanding::kRecord);
  scene.witness.processes[140].stat.exit_code = 0xb;
  CHECK(!scene.aggregator.AwaitsRecord());
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 4u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK_EQUAL(scene.ends[1].core, 0);
  CHECK_EQUAL(scene.ends[2].core, 1);
  CHECK_EQUAL(scene.ends[3].core, 0);
}

void ThereIsNoWaitForARecordThatMayBeLost() {
  Scene scene;
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0xb, Outstanding::kRecord);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.aggregator.ForgetUnconfirmed();
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].core, -1);
  scene.HoldPidfd(20, 8, ProcessState::kGone, 0xb, Outstanding::kRecord);
  scene.aggregator.SetStream(StreamKind::kNone);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
}

void AThreadThatATracerHeldAlsoWaitsForTheRecord() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'S', 2).inode = 7;
  ProcEvent event;
  event.timestamp_ns = scene.witness.now_ns;
  event.tgid = 10;
  CHECK(scene.aggregator.OnPtracedExit(event, false));  // of a thread, long before
  scene.Process(10, ProcessState::kGone).exit_status = 0xb;
  scene.witness.processes[10].inode = 7;
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0xb, Outstanding::kRecord);
  scene.Pass(1000 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.aggregator.Supersede({10, 10, 7, 0, 0});
  CHECK_EQUAL(scene.witness.open, 0);
}

void AGuardReplacesAHandleThatKnowsLess() {
  Scene scene;
  scene.witness.can_hold = false;  // pidfd_open(2) is now forbidden: no inode either
  scene.expected_inode = 7;
  scene.Process(10, ProcessState::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(50 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  CHECK_EQUAL(scene.witness.open, 1);
  scene.Process(10, ProcessState::kGone);
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x700);
  scene.Pass(50 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK_EQUAL(scene.witness.open, 0);
}

void TheLastThreadsEventMayBeLateIfOnlyItHasTheStatus() {
  Scene scene;
  scene.witness.can_hold = false;
  scene.Process(10, ProcessState::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(50 * kMs);
  scene.Process(10, ProcessState::kGone);
  scene.Pass(300 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(11, 10, 0x700);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);

  scene.Process(20, ProcessState::kAlive, 'Z', 2);  // the last thread returns
  scene.Exit(20, 20, 0);
  scene.Pass(50 * kMs);
  scene.Process(20, ProcessState::kGone);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0);
}

void SeveralPossibleCodesMakeTheStatusUnknown() {
  Scene scene;
  scene.witness.can_hold = false;
  scene.Process(10, ProcessState::kAlive, 'Z', 3);
  scene.Exit(10, 10, 0x500);
  scene.Pass(20 * kMs);
  scene.Exit(12, 10, 0xa00);
  scene.Process(10, ProcessState::kGone);
  scene.Pass(20 * kMs);
  scene.Exit(11, 10, 0x900);  // ended earlier, but its event was late
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, -1);

  scene.Process(20, ProcessState::kAlive, 'Z', 3);
  scene.Exit(20, 20, 0x500);
  scene.Pass(20 * kMs);
  scene.Exit(21, 20, 9);  // a signal ends all threads
  scene.Process(20, ProcessState::kGone);
  scene.Pass(40 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 9);

  scene.Process(30, ProcessState::kAlive, 'Z', 3);
  scene.Exit(30, 30, 0x700);  // together with all the others
  scene.Exit(31, 30, 0x700);
  scene.Pass(20 * kMs);
  scene.Process(30, ProcessState::kGone);
  scene.Pass(40 * kMs);
  CHECK_EQUAL(scene.ends.size(), 3u);
  CHECK_EQUAL(scene.ends[2].status, 0x700);

  scene.Process(40, ProcessState::kAlive, 'Z', 3);
  scene.Exit(40, 40, 0x500);
  scene.Pass(20 * kMs);
  scene.Exit(41, 40, 0x900);
  scene.Pass(100 * kMs);
  const uint64_t alive_ns = scene.witness.now_ns;
  scene.Process(40, ProcessState::kGone);
  scene.Pass(1100 * kMs);  // the last thread's event never comes
  CHECK_EQUAL(scene.ends.size(), 4u);
  CHECK_EQUAL(scene.ends[3].status, -1);
  CHECK(scene.ends[3].latest_ns >= alive_ns);
}

// Before Linux 5.17.
void AZombieThatIsBeingReleasedProvesNothing() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(50 * kMs);
  scene.Process(10, ProcessState::kDead, 'Z', 0, 0);  // without a thread
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.Exit(11, 10, 0x700);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
}

void AZombiesCodeMayBeOnlyItsFirstThreads() {
  Scene scene;
  scene.witness.stat_tells_status = false;
  scene.Process(10, ProcessState::kAlive, 'Z', 2);
  scene.Exit(10, 10, 0);
  scene.Pass(50 * kMs);
  scene.Exit(11, 10, 9);
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0);
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns - kMs);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 9);

  // The last thread's event comes late.
  scene.Process(20, ProcessState::kAlive, 'Z', 2);
  scene.Exit(20, 20, 0);
  scene.Pass(50 * kMs);
  scene.Process(20, ProcessState::kDead, 'Z', 1, 0);
  scene.aggregator.OnHandleReady(20, scene.witness.now_ns - kMs);
  scene.Pass(300 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  scene.Exit(21, 20, 0x700);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0x700);

  // Only the first thread was seen, which had left by itself.
  scene.Process(30, ProcessState::kDead, 'Z', 1, 0x500);
  scene.Exit(30, 30, 0x500);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 3u);
  CHECK_EQUAL(scene.ends[2].status, 0x500);
}

void AFirstThreadThatASignalEndsEndsWithItsGroup() {
  Scene scene;
  scene.witness.stat_tells_status = false;
  scene.aggregator.SetStream(StreamKind::kNone);
  const int32_t codes[] = {9, 0x8b, 0xb, 0x1f, 0, 0x700};
  for (int32_t i = 0; i < 6; i++) {
    scene.HoldPidfd(10 + i, 7 + i, ProcessState::kDead, {}, ThreadGroup::Outstanding::kNothing);
    scene.Process(10 + i, ProcessState::kDead, 'Z', 1, codes[i]);
    scene.aggregator.OnHandleReady(10 + i, scene.witness.now_ns);
  }
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 6u);
  std::map<int32_t, End> by_pid;
  for (size_t i = 0; i < 6; i++) by_pid.emplace(scene.ends[i].pid, scene.ends[i]);
  CHECK_EQUAL(by_pid.at(10).status, 9);
  CHECK_EQUAL(by_pid.at(10).core, 0);
  CHECK_EQUAL(by_pid.at(11).status, 0x8b);
  CHECK_EQUAL(by_pid.at(12).status, 0xb);
  CHECK_EQUAL(by_pid.at(12).core, -1);    // another thread may have dumped
  CHECK_EQUAL(by_pid.at(13).status, -1);  // by seccomp, perhaps just that thread
  CHECK_EQUAL(by_pid.at(14).status, -1);  // others may have lived longer
  CHECK_EQUAL(by_pid.at(15).status, -1);
}

void AProcessFoundWithoutItsFirstThreadEndsAsTheOthersReport() {
  Scene scene;
  scene.witness.stat_tells_status = false;
  for (const int32_t pid : {10, 20, 30}) {
    scene.Process(pid, ProcessState::kAlive, 'Z', 2, pid == 30 ? 0x500 : 0);
    scene.witness.open++;
    scene.aggregator.Adopt({pid, 10}, pid, scene.witness.now_ns, ThreadGroup::Cause::kFound);
  }
  scene.Pass(100 * kMs);
  scene.Exit(11, 10, 9);
  for (const int32_t pid : {10, 20, 30}) {
    scene.Process(pid, ProcessState::kDead, 'Z', 1, pid == 30 ? 0x500 : 0);
    scene.aggregator.OnHandleReady(pid, scene.witness.now_ns);
  }
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 3u);
  std::map<int32_t, int32_t> statuses;
  for (size_t i = 0; i < 3; i++) statuses[scene.ends[i].pid] = scene.ends[i].status;
  CHECK_EQUAL(statuses[10], 9);
  CHECK_EQUAL(statuses[20], 0);   // no other code came
  CHECK_EQUAL(statuses[30], -1);  // its own code, or another thread's 0 for the group
}

void AnEventMayBeLateIfOnlyItHasTheStatus() {
  Scene scene;
  scene.HoldPidfd(10, 7, ProcessState::kGone, {});  // before Linux 6.15
  scene.Pass(900 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(10, 10, 0x700, 0);
  scene.Pass(30 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);

  // The wait has a limit.
  scene.HoldPidfd(20, 8, ProcessState::kGone, {});
  scene.Pass(900 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  scene.Pass(200 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, -1);

  // The aggregator does not wait for an event that may be lost.
  scene.HoldPidfd(30, 9, ProcessState::kGone, {});
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  scene.aggregator.ForgetUnconfirmed();
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 3u);
}

void AnEventThatOnlyItsWatcherAwaitedIsNotRemembered() {
  Scene scene;
  scene.aggregator.ReportsAll(false);
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x700);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  scene.Exit(10, 10, 0x100, 0);  // a new process with the pid, also watched
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0x100);
}

// It was being watched while it exited: nobody knew it when its exit event came.
void AnExitThatCameBeforeItsProcessWasKnownIsItsOwn() {
  Scene scene;
  scene.witness.now_ns = 150 * kMs;  // it started in tick 10
  scene.Process(10, ProcessState::kGone);
  scene.Exit(10, 10, 0);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);  // another thread may have had another code
  scene.Process(100, ProcessState::kGone).inode = 7;
  scene.witness.open++;
  scene.aggregator.Adopt({10, 10, 7}, 100, scene.witness.now_ns, ThreadGroup::Cause::kWatched);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].inode, 7u);

  // That of a process which had the pid earlier is not.
  scene.Process(20, ProcessState::kGone);
  scene.Exit(20, 20, 0);
  scene.Pass(100 * kMs);
  scene.Process(120, ProcessState::kGone).inode = 8;
  scene.witness.open++;
  scene.aggregator.Adopt({20, 10'000, 8}, 120, scene.witness.now_ns, ThreadGroup::Cause::kWatched);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].inode, 0u);
  CHECK_EQUAL(scene.witness.open, 0);
}

void AProcessFoundAliveWaitsForItsRecord() {
  Scene scene;
  scene.aggregator.SetStream(StreamKind::kGroups);
  scene.Process(10, ProcessState::kAlive, 'Z', 2).inode = 7;
  scene.witness.open++;
  scene.aggregator.Adopt({10, 10, 7}, 10, scene.witness.now_ns, ThreadGroup::Cause::kFound);
  scene.Process(10, ProcessState::kGone).inode = 7;  // no status before Linux 6.15
  scene.aggregator.OnHandleReady(10, scene.witness.now_ns);
  scene.Pass(1000 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.aggregator.Supersede({10, 10, 7});
  CHECK(!scene.aggregator.IsEnding(10));
}

void ContradictoryCodesMakeTheStatusUnknown() {
  Scene scene;
  scene.Exit(11, 10, 0x900);
  scene.Exit(10, 10, 0x500);
  scene.Exit(12, 10, 0xa00);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, -1);

  // The order of the timestamps does not matter: a signal ends all threads together.
  scene.Exit(22, 20, 9);
  scene.Exit(21, 20, 0x900);
  scene.Exit(20, 20, 0x500);
  scene.Pass(1100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 9);

  // A thread that left long before does not count.
  scene.Process(30, ProcessState::kAlive, 'S', 2);
  scene.Exit(31, 30, 0x900);
  scene.Pass(2000 * kMs);
  scene.Process(30, ProcessState::kGone);
  scene.Exit(30, 30, 0x500);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 3u);
  CHECK_EQUAL(scene.ends[2].status, 0x500);
}

void WithoutAnInodeTheStartTimeIdentifiesAZombie() {
  Scene scene;
  scene.expected_inode = 7;
  scene.Process(10, ProcessState::kDead, 'Z', 1, 0x700);  // without an inode, and started before
  scene.Exit(10, 10, 0);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  scene.Process(20, ProcessState::kDead, 'Z', 1, 0x700).stat.start_ticks =
      1'000'000;  // started later
  scene.Exit(20, 20, 9);
  scene.Pass(kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 9);
}

void WithoutAStreamAGuardDoesNotWait() {
  Scene scene;
  scene.aggregator.SetStream(StreamKind::kNone);
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x700);
  scene.aggregator.Settle(scene.witness.now_ns);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK(!scene.ends[0].by_kernel);
}

void AGuardsProcessIsNotTheNextOneWithItsPid() {
  Scene scene;  // the first process's exit was lost
  scene.expected_inode = 8;
  scene.Exit(10, 10, 0x100);
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x700);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[1].status, 0x100);
  CHECK_EQUAL(scene.witness.open, 0);
}

void ASecondExitOfADeadGroupIsFromTheNextProcess() {
  Scene scene;
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x700);
  scene.Exit(10, 10, 0x700);
  scene.Exit(10, 10, 0x100);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[0].status, 0x700);
  CHECK_EQUAL(scene.ends[1].status, 0x100);
}

void ANewProcessWithThePidProvesADeath() {
  Scene scene;
  scene.Process(10, ProcessState::kAlive);  // the next process
  scene.Exit(10, 10, 15);
  scene.witness.now_ns += kMs / 10;
  scene.Fork(10, 10);
  scene.witness.now_ns += kMs / 10;
  scene.Exec(10);
  scene.Exit(10, 10, 0x500, 0);
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 2u);
  CHECK_EQUAL(scene.ends[0].status, 15);
  CHECK_EQUAL(scene.ends[1].status, 0x500);
}

void ANewThreadOrAnEarlierForkProvesNothing() {
  Scene scene;
  scene.Fork(10, 10);
  scene.witness.now_ns += kMs / 10;
  scene.Exit(10, 10, 0);
  scene.Fork(11, 10);
  scene.Exec(10);  // from another thread
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 0u);
}

void AnExecThatIsReadLateLeavesTheGuard() {
  Scene scene;
  const uint64_t exec_ns = scene.witness.now_ns;
  scene.Pass(kMs);
  scene.HoldPidfd(10, 7, ProcessState::kGone, 0x400);
  scene.Exec(10, exec_ns);
  scene.Exec(10, exec_ns + 100 * kMs);  // from the next process
  scene.Pass(100 * kMs);
  CHECK_EQUAL(scene.ends.size(), 1u);
  CHECK_EQUAL(scene.ends[0].status, 0x400);
}

// The new program has ended, and so its guard has, before its exec is read; its own event is late.
void TheGuardOfANewProgramOutrunsTheProgramsEvent() {
  for (const ProcessState life : {ProcessState::kGone, ProcessState::kAlive}) {
    Scene scene;
    scene.Process(10, life);
    scene.Exit(10, 10, 0, life == ProcessState::kGone ? 0 : 5);
    const uint64_t exec_ns = scene.witness.now_ns;
    scene.witness.now_ns += kMs;
    scene.witness.processes.erase(10);
    scene.HoldPidfd(10, 7, ProcessState::kGone, 0x400);
    scene.Exec(10, exec_ns);
    scene.Pass(500 * kMs);
    CHECK_EQUAL(scene.ends.size(), 1u);
    CHECK_EQUAL(scene.ends[0].status, 0x400);
    scene.Exit(10, 10, 0x400, 0);
    scene.Pass(100 * kMs);
    CHECK_EQUAL(scene.ends.size(), 1u);
    scene.Exit(10, 10, 0x100, 0);  // from the next process
    CHECK_EQUAL(scene.ends.size(), 2u);
  }
}

}  // namespace

void test::ThreadGroupAggregatorTests() {
  AReleasedProcessEndsAtOnce();
  AReapedProcessEndsOnceTheStreamIsReadPastTheProof();
  AFirstThreadsZeroWaitsForTheLastThreadsCode();
  AReleasedFirstThreadNeedNotHaveBeenTheLast();
  AFirstThreadsZeroIsTheStatusIfNothingElseComes();
  AFirstThreadsZeroOfAWatchedProcessWaits();
  AHandleWithoutACoreBitWaitsForTheEvent();
  AHandleEndsTheWaitForAnEvent();
  AHandleThatMayHoldTheFirstThreadsCodeIsNotTrusted();
  AHandleThatMayHoldTheFirstThreadsCodeWaitsForOthers();
  TheStatusOfAnEndingProcessIsReadWhileItLives();
  AHeldProcessIsCheckedForEachThread();
  WithoutAStreamThereIsNoWaitForEvents();
  AProcessWithoutItsFirstThreadLives();
  AHandleReportsAnEndWithoutAnEvent();
  ACodeOtherThanTheGroupsWasNotTheLastThreads();
  TheHandleEndsTheProcessOfATracedThread();
  ATracedThreadThatIsGoneHasReportedTheStatus();
  AnEndFromAnotherSourceIsNotReportedAgain();
  AnExecByAnotherThreadIsNotADeath();
  AnExecThatIsReadLateIsNotADeath();
  AnExecEndsTheHoldOfAHandle();
  TwoExitsOfOnePidWithoutAnExecAreTwoProcesses();
  AProcessOfTheSameTickIsNewIfNoExecComes();
  AZombieOfTheSameTickMayBeALaterProcess();
  AProcessWithAnotherInodeIsAnother();
  AnEventIsThatOfALaterProcessWhichWasThereBeforeIt();
  IfBothMayHaveExitedWithThisCodeNobodyKnows();
  ALateEventOfAReapedProcessLeavesTheNextOneAlone();
  AnExecOfALaterProcessEndsNothing();
  ASignalSoonAfterTheFirstThreadsExitMayBeOfEither();
  AProgramThatIsGoneSoonAfterAnExecReportsItsOwnExit();
  AnotherProcessWithThePidProvesADeath();
  ADumpByAnyThreadIsTheGroupsDump();
  AThreadThatAnnouncedADumpMayBeLate();
  AnAnnouncedDumpThatWasNotWrittenDoesNotCount();
  AnOldCodeOfAThreadIsNotTheProcessStatus();
  ALateThreadDoesNotAffectTheNextProcess();
  AZombieThatWasNeverSeenToEndWaitsForItsStatus();
  HandlesArePolledIfTheKernelCannotWakeTheReader();
  APresumedEndIsUnknownUnlessAnEventComes();
  AGuardReportsAStatusWithoutAnEvent();
  AGuardWaitsForTheStream();
  AGuardThatIsReadLateKeepsTheKernelsTimestamp();
  AVeryLateEventIsNotReportedAgain();
  AZombiesEventEndsTheWaitForItsReaping();
  AGuardWithoutACoreBitWaitsForTheRecord();
  ACodeThatMayBeTheFirstThreadsWaitsForTheRecord();
  TheWaitForARecordHasALimit();
  ALateReaderReadsTheRecordFirst();
  AnEndThatNeedsNoRecordIsReportedAtOnce();
  ThereIsNoWaitForARecordThatMayBeLost();
  AThreadThatATracerHeldAlsoWaitsForTheRecord();
  AGuardReplacesAHandleThatKnowsLess();
  TheLastThreadsEventMayBeLateIfOnlyItHasTheStatus();
  SeveralPossibleCodesMakeTheStatusUnknown();
  AZombieThatIsBeingReleasedProvesNothing();
  AZombiesCodeMayBeOnlyItsFirstThreads();
  AFirstThreadThatASignalEndsEndsWithItsGroup();
  AProcessFoundWithoutItsFirstThreadEndsAsTheOthersReport();
  AnEventMayBeLateIfOnlyItHasTheStatus();
  AnEventThatOnlyItsWatcherAwaitedIsNotRemembered();
  AnExitThatCameBeforeItsProcessWasKnownIsItsOwn();
  AProcessFoundAliveWaitsForItsRecord();
  ContradictoryCodesMakeTheStatusUnknown();
  WithoutAnInodeTheStartTimeIdentifiesAZombie();
  WithoutAStreamAGuardDoesNotWait();
  AGuardsProcessIsNotTheNextOneWithItsPid();
  ASecondExitOfADeadGroupIsFromTheNextProcess();
  ANewProcessWithThePidProvesADeath();
  ANewThreadOrAnEarlierForkProvesNothing();
  AnExecThatIsReadLateLeavesTheGuard();
  TheGuardOfANewProgramOutrunsTheProgramsEvent();
}

}  // namespace exitwatch
