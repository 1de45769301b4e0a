// Runs several readers without Node, for sanitizers and valgrind, while processes end, watches come
// and go, and threads ask for statistics. Prints failures, and exits with 1 if there are any.
//
//   reader_test [ROUNDS]
#include <poll.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "check.h"
#include "linux/bpf/bpf_permission.h"
#include "linux/bpf/bpf_program.h"
#include "linux/bpf/bpf_syscall.h"
#include "linux/reader/exit_reader.h"
#include "linux/system/pidfd.h"
#include "linux/system/proc_files.h"
#include "linux/system/stat_code_trial.h"
#include "tests.h"

namespace exitwatch {
namespace {

constexpr int kReaders = 4;
constexpr int kChildren = 100;
constexpr uint64_t kMillisecond = 1'000'000;

// A reader and what it has delivered.
class Observer {
 public:
  Observer(const std::shared_ptr<ExitReader::Shared>& shared, bool watched_only, bool force_cbpf)
      : reader_(OptionsFor(watched_only, force_cbpf), shared, [this] { wakes_++; }) {}

  ExitReader& reader() { return reader_; }

  // Collects the deliveries so far. Returns whether the reader has reported that it is ready or
  // failed.
  bool IsReady() {
    Take();
    return ready_ || failed_;
  }

  bool HasFailed() const { return failed_; }

  bool HasAll(const std::vector<pid_t>& pids) {
    Take();
    for (const pid_t pid : pids) {
      if (statuses_.count(pid) == 0) return false;
    }
    return true;
  }

  int32_t StatusOf(pid_t pid) const { return statuses_.at(pid); }

 private:
  static ExitReader::Options OptionsFor(bool watched_only, bool force_cbpf) {
    ExitReader::Options options;
    options.stream.watched_only = watched_only;
    options.stream.force_cbpf = force_cbpf;
    options.stream.receive_buffer_bytes = 4 * 1024 * 1024;
    options.queue_limit = 100'000;
    options.canary_interval_ns = 100 * kMillisecond;
    options.status_timeout_ns = 1000 * kMillisecond;
    options.use = ExitReader::StreamUse::kPreferred;
    options.opens_pidfds = true;
    options.traces_signals = true;
    return options;
  }

  void Take() {
    // Reads like an event loop.
    if (reader_.offers_stream()) reads_in_loop_ = reader_.TakeStream();
    pollfd doorbell = {reader_.doorbell(), POLLIN, 0};
    if (reads_in_loop_ && poll(&doorbell, 1, 0) > 0) reads_in_loop_ = reader_.ReadInLoop();
    const auto visit = [this](const Record& record) {
      if (const auto* exit = std::get_if<ExitRecord>(&record)) statuses_[exit->pid] = exit->status;
      const auto* source = std::get_if<SourceRecord>(&record);
      if (source == nullptr) return;
      ready_ = ready_ || source->kind == RecordKind::kReady;
      failed_ = failed_ || source->kind == RecordKind::kFailed;
    };
    while (reader_.queue().Take(64, visit) != 0) {
    }
  }

  ExitReader reader_;
  std::atomic<uint64_t> wakes_{0};
  std::map<pid_t, int32_t> statuses_;
  bool reads_in_loop_ = false;
  bool ready_ = false;
  bool failed_ = false;
};

template <typename Condition>
bool Until(Condition condition) {
  for (int i = 0; i < 20'000; i++) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

bool Watch(ExitReader& reader, pid_t pid, bool also_remove) {
  ProcStat stat;
  if (!ReadProcStat(pid, &stat)) return false;
  const uint64_t inode = PidfdInode(OpenPidfd(pid).Get());
  SystemError error;
  const auto result = reader.watched().Add(pid, stat.start_ticks, inode, &error);
  if (also_remove) {
    reader.watched().Remove(pid, stat.start_ticks, inode);
    return reader.watched().Add(pid, stat.start_ticks, inode, &error) ==
           WatchedProcesses::Result::kArmed;
  }
  return result == WatchedProcesses::Result::kArmed;
}

// Spawns children that live until the returned end of a pipe is closed. The i-th exits with i.
int SpawnChildren(std::vector<pid_t>* pids) {
  int gate[2];
  if (pipe(gate) != 0) std::abort();
  for (int i = 0; i < kChildren; i++) {
    const pid_t pid = fork();
    if (pid == 0) {
      close(gate[1]);
      char byte;
      _exit(read(gate[0], &byte, 1) == 0 ? i : 255);
    }
    pids->push_back(pid);
  }
  close(gate[0]);
  return gate[1];
}

void ReadersReportTheSameChildren(bool force_cbpf) {
  const auto shared = std::make_shared<ExitReader::Shared>();
  std::vector<pid_t> pids;
  const int gate = SpawnChildren(&pids);
  std::vector<std::unique_ptr<Observer>> all;
  for (int i = 0; i < kReaders; i++) {
    all.push_back(std::make_unique<Observer>(shared, i % 2 == 0, force_cbpf));
    if (i == 0) CHECK(Watch(all[0]->reader(), pids[0], true));  // before the start
    CHECK(!all.back()->reader().Start());
  }
  // Another thread asks for statistics all the time.
  std::atomic<bool> done{false};
  std::thread asks([&] {
    while (!done) {
      for (const auto& told : all) {
        told->reader().queue().counts();
        told->reader().NsSinceProof();
        told->reader().wakeups();
        told->reader().rejected();
      }
    }
  });
  for (const auto& told : all) {
    CHECK(Until([&] { return told->IsReady(); }));
    CHECK(!told->HasFailed());
  }
  for (int i = 0; i < kReaders; i += 2) {
    for (size_t child = i == 0 ? 1 : 0; child < pids.size(); child++) {
      CHECK(Watch(all[static_cast<size_t>(i)]->reader(), pids[child], child % 3 == 0));
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(250));  // time for some canaries
  close(gate);
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  for (const auto& told : all) {
    CHECK(Until([&] { return told->HasAll(pids); }));
    for (size_t child = 0; child < pids.size() && told->HasAll(pids); child++) {
      CHECK_EQUAL(told->StatusOf(pids[child]), static_cast<int32_t>(child) << 8);
    }
  }
  done = true;
  asks.join();
  for (const auto& told : all) told->reader().Stop();
}

// True since Linux 5.17. Older kernels have other data in the field, or none in some distributions.
void TheTrialFindsWhatTheKernelHas() {
  utsname names;
  CHECK_EQUAL(uname(&names), 0);
  int major = 0;
  int minor = 0;
  CHECK_EQUAL(std::sscanf(names.release, "%d.%d", &major, &minor), 2);
  const bool is_status = StatCodeIsStatus();
  CHECK(is_status || major < 5 || (major == 5 && minor < 17));
  CHECK_EQUAL(StatCodeIsStatus(), is_status);
}

// A process that may load the filter for this kernel may also load the one for kernels before Linux
// 6.0.
void TheFilterForOlderKernelsPassesTheVerifier() {
  KernelTypes types;
  KernelLayout layout;
  if (AskBpfPermission() || types.ForGroups(&layout)) return;
  const UniqueFd ring = bpf::CreateMap("test_ring", bpf::kRingbuf, 0, 0, 4096, 0);
  const UniqueFd state =
      bpf::CreateMap("test_state", bpf::kArray, 4, sizeof(GroupFilterState), 1, bpf::kMmapable);
  CHECK(ring && state);
  for (const bool always : {true, false}) {
    layout.signal.always_has_code = always;
    UniqueFd program;
    const BpfRefusal refusal = LoadBpfProgram(
        "test", bpf::kSocketFilter,
        BuildGroupFilter(layout, {ring.Get(), state.Get(), -1, -1, -1}, 1), &program);
    CHECK(!refusal);
    CHECK(program);
  }
}

// Stops readers at any time, also while they start.
void AReaderCanBeStoppedAtAnyTime() {
  const auto shared = std::make_shared<ExitReader::Shared>();
  for (int i = 0; i < 20; i++) {
    Observer told(shared, i % 2 == 0, i % 3 == 0);
    CHECK(!told.reader().Start());
    std::this_thread::sleep_for(std::chrono::microseconds(200 * i));
    told.reader().Stop();
    told.reader().Stop();
  }
  const Observer never_started(shared, true, false);
}

}  // namespace
}  // namespace exitwatch

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int i = 0; i < rounds; i++) {
    exitwatch::ReadersReportTheSameChildren(false);
    exitwatch::ReadersReportTheSameChildren(true);
    exitwatch::TheTrialFindsWhatTheKernelHas();
    exitwatch::TheFilterForOlderKernelsPassesTheVerifier();
    exitwatch::AReaderCanBeStoppedAtAnyTime();
  }
  exitwatch::test::OwnChildrenTests();
  exitwatch::test::SilenceDetectorTests();
  std::printf("%d wrong\n", exitwatch::test::failures);
  return exitwatch::test::failures == 0 ? 0 : 1;
}
