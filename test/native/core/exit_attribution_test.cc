#include <optional>
#include <vector>

#include "check.h"
#include "core/groups/exit_attribution.h"
#include "fake_witness.h"
#include "tests.h"

namespace exitwatch {

namespace {

using test::FakeWitness;

constexpr uint64_t kMs = 1'000'000;
constexpr int32_t kPid = 10;

struct End {
  uint64_t inode;
  int32_t status;  // -1: unknown
};

// Two watched processes that had the same pid, one after the other: inodes 1 and 2.
class Scene {
 public:
  explicit Scene(bool reports_all = false)
      : aggregator_(witness, 1000 * kMs, [this](const ThreadGroup& group) { OnEnd(group); }),
        attribution_(reports_all, 1000 * kMs, witness, watches, aggregator_,
                     [](int32_t, uint64_t) { return std::optional<GroupIdentity>(); }) {
    for (const uint64_t inode : {1, 2}) Watch(inode);
  }

  void Watch(uint64_t inode) {
    exitwatch::Watch watch;
    watch.pid = kPid;
    watch.process.start_ticks = witness.TickOf(witness.now_ns);
    watch.process.inode = inode;
    watch.since_ns = witness.now_ns;
    watches.Add(watch, [] { return uint64_t{0}; });
    witness.now_ns += 100 * kMs;
  }

  // The process that has the pid now.
  void Hold(uint64_t inode, ProcessState life, int32_t code = 0) {
    FakeWitness::Process& process = witness.processes[kPid];
    process.life = life;
    process.inode = inode;
    process.stat.start_ticks = witness.TickOf((900 + 100 * inode) * kMs);
    process.stat.state = life == ProcessState::kDead ? 'Z' : 'S';
    process.stat.threads = 1;
    process.stat.exit_code = code;
    process.stat.parent_pid = 5;
  }

  // `inode`: which process's event it is; the parent of the second one has not reaped it.
  void Exit(uint64_t inode, int32_t code, bool is_released) {
    ProcEvent event;
    event.what = kProcEventExit;
    event.timestamp_ns = witness.now_ns;
    event.pid = event.tgid = kPid;
    event.exit_code = code;
    event.parent_tgid = is_released ? 0 : 5;
    if (inode == 1 && !is_released) event.timestamp_ns = 1050 * kMs;
    attribution_.OnExit(event);
  }

  void Pass(uint64_t ns) {
    for (const uint64_t end_ns = witness.now_ns + ns; witness.now_ns < end_ns;) {
      attribution_.Retry();
      aggregator_.Settle(witness.now_ns);
      witness.now_ns += kMs;
    }
  }

  // -1: unknown, -2: not reported.
  int32_t StatusOf(uint64_t inode) const {
    for (const End& end : ends) {
      if (end.inode == inode) return end.status;
    }
    return -2;
  }
  bool HasKept() const { return attribution_.HasKept(); }

  FakeWitness witness;
  WatchSet watches;
  std::vector<End> ends;

 private:
  void OnEnd(const ThreadGroup& group) {
    ends.push_back({group.Identity().inode, group.Status().value_or(-1)});
    if (group.certainty == EventOwner::Certainty::kUnobserved) return;
    watches.Take(group.Identity(), group.times.ended_ns);
  }

  ThreadGroupAggregator aggregator_;
  ExitAttribution attribution_;
};

void ALateEventBelongsToTheProcessThatIsGone() {
  Scene scene;
  scene.Hold(2, ProcessState::kAlive);
  scene.Exit(1, 0x700, true);
  CHECK_EQUAL(scene.StatusOf(1), 0x700);
  scene.Hold(2, ProcessState::kDead, 0x300);
  scene.Exit(2, 0x300, false);
  scene.Pass(kMs * 50);
  CHECK_EQUAL(scene.StatusOf(2), 0x300);
  CHECK_EQUAL(scene.ends.size(), 2u);
}

void AnEventThatComesAfterTheNextOnesBelongsToTheOtherProcess() {
  Scene scene;
  scene.Hold(2, ProcessState::kDead, 0x300);
  scene.Exit(2, 0x300, false);
  scene.Exit(1, 0x700, true);
  scene.Pass(50 * kMs);
  CHECK_EQUAL(scene.StatusOf(1), 0x700);
  CHECK_EQUAL(scene.StatusOf(2), 0x300);
  CHECK_EQUAL(scene.ends.size(), 2u);
}

void AnEventThatDoesNotTellIsKeptUntilTheOtherCame() {
  Scene scene;
  scene.Exit(1, 0x700, true);
  CHECK(scene.HasKept());
  CHECK_EQUAL(scene.ends.size(), 0u);
  scene.Exit(2, 0x300, false);
  scene.Pass(50 * kMs);
  CHECK(!scene.HasKept());
  CHECK_EQUAL(scene.StatusOf(1), 0x700);
  CHECK_EQUAL(scene.StatusOf(2), 0x300);
}

void IfNeitherEventTellsBothAreUnknown() {
  Scene scene;
  scene.Exit(1, 0x700, true);
  scene.Exit(2, 0x300, true);
  scene.Pass(5000 * kMs);
  CHECK(!scene.HasKept());
  CHECK_EQUAL(scene.StatusOf(1), -1);
  CHECK_EQUAL(scene.StatusOf(2), -1);
  CHECK_EQUAL(scene.ends.size(), 2u);
}

void AnEventOfBeforeTheWatchesEndsNeither() {
  for (const bool reports_all : {false, true}) {
    Scene scene(reports_all);
    scene.watches.Remove(kPid, scene.witness.TickOf(1000 * kMs), 1);
    scene.Hold(2, ProcessState::kAlive);
    scene.Exit(1, 0x700, true);
    scene.Pass(50 * kMs);
    CHECK_EQUAL(scene.StatusOf(2), -2);
    CHECK_EQUAL(scene.ends.size(), reports_all ? 1u : 0u);
    scene.Hold(2, ProcessState::kGone);
    scene.Exit(2, 0x300, true);
    scene.Pass(50 * kMs);
    CHECK_EQUAL(scene.StatusOf(2), 0x300);
  }
}

}  // namespace

void test::ExitAttributionTests() {
  ALateEventBelongsToTheProcessThatIsGone();
  AnEventThatComesAfterTheNextOnesBelongsToTheOtherProcess();
  AnEventThatDoesNotTellIsKeptUntilTheOtherCame();
  IfNeitherEventTellsBothAreUnknown();
  AnEventOfBeforeTheWatchesEndsNeither();
}

}  // namespace exitwatch
