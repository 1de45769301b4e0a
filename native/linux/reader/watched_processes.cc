// One idea: a watch from the moment that it is armed until its pidfd or the stream takes it over;
// every step is written so that an exit in between is seen by the next.
#include "linux/reader/watched_processes.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "linux/reader/recheck.h"
#include "linux/system/descriptor_limit.h"
#include "linux/system/numbered_processes.h"
#include "linux/system/pidfd.h"
#include "linux/system/proc_files.h"

namespace exitwatch {

namespace {

bool IsOver(ProcessState state) {
  return state == ProcessState::kDead || state == ProcessState::kGone;
}

// Whether a handle that was just opened belongs to this process, not to another one with its pid.
bool IsOf(const GroupIdentity& identity, ProcessWitness::Handle handle, ProcessWitness& witness) {
  ProcStat stat;
  return witness.ReadStat(identity.pid, &stat) && stat.start_ticks == identity.start_ticks &&
         witness.Look(handle) != ProcessState::kGone;
}

}  // namespace

SystemError WatchedProcesses::Open() {
  if (pidfds_.fd() >= 0) return {};
  return pidfds_.Open();
}

SystemError WatchedProcesses::OpenProcess(int32_t pid, OpenedProcess* process) {
  if (const SystemError error = Open()) return error;
  return process->Open(pid);
}

WatchedProcesses::Result WatchedProcesses::Add(int32_t pid, uint64_t start_ticks, uint64_t inode,
                                               SystemError* error) {
  OpenedProcess process;
  *error = OpenProcess(pid, &process);
  if (error->code == Failure::kNoPidfd) return AddByNumber(pid, start_ticks, inode, error);
  if (IsGone(*error) || error->code == Failure::kNoProc) return Result::kGone;
  if (*error) return Result::kFailed;
  if (process.stat.start_ticks != start_ticks || (inode != 0 && inode != process.inode)) {
    return Result::kGone;
  }
  return Register(std::move(process), error);
}

WatchedProcesses::Result WatchedProcesses::AddByPid(int32_t pid, GroupIdentity* added,
                                                    SystemError* error) {
  OpenedProcess process;
  *error = OpenProcess(pid, &process);
  if (*error) return IsGone(*error) ? Result::kGone : Result::kFailed;
  if (process.stat.IsKernelThread()) return Result::kGone;
  *added = {pid, process.stat.start_ticks, process.inode, 0, 0};
  return Register(std::move(process), error);
}

// Registers it and looks again. That look sees what changed since it was opened; the stream and the
// pidfd report what changes later.
WatchedProcesses::Result WatchedProcesses::Register(OpenedProcess opened, SystemError* error) {
  auto& [pidfd, stat, actual_inode] = opened;
  const int32_t pid = stat.pid;
  std::optional<uint32_t> uid = ReadProcUid(pid);
  // If the process was reaped meanwhile, the file may have been that of a later one.
  if (LookAtPidfd(pidfd.Get()) == ProcessState::kGone) uid.reset();
  const uint64_t start_ticks = stat.start_ticks;
  const bool may_keep = options_.opens_pidfds && MayKeepDescriptor(pidfd.Get());
  owner_clock_.Sample();
  const uint64_t now_ns = owner_clock_.Now();
  const GroupIdentity identity = {pid, start_ticks, actual_inode, 0, 0};

  const std::lock_guard<std::mutex> lock(mutex_);
  const int fd = pidfd.Get();
  const bool keeps_pidfd = may_keep && pidfds_.Add(fd, pid);
  if (!keeps_pidfd && stream_ == StreamKind::kNone) {
    *error = may_keep ? SystemError{Failure::kSystem, errno, "epoll_ctl"}
                      : SystemError{Failure::kDescriptorLimit, EMFILE, "pidfd_open"};
    return Result::kFailed;
  }
  ProcessEntry process(stat, actual_inode, uid);
  process.cgroup = PidfdCgroup(fd);
  cgroups_.Look(process.cgroup);
  set_.Add({pid, process, now_ns, 0, keeps_pidfd ? fd : -1}, [this] { return owner_clock_.Now(); });
  const bool is_over = IsOver(LookAtPidfd(fd));
  const uint64_t alive_ns = is_over ? owner_clock_.TimeOfTick(start_ticks) : now_ns;
  if (keeps_pidfd) {
    const auto cause = is_over ? CauseOfDead() : ThreadGroup::Cause::kPidfd;
    const bool expects_event =
        armed_ && stream_ != StreamKind::kNone && !is_over && !stat.IsZombie();
    // A process that exits from now on sees that it is watched.
    const bool expects_record = stream_ == StreamKind::kGroups && !is_over;
    pinned_.insert_or_assign(
        fd, Pinned{identity, std::move(pidfd), alive_ns, cause, expects_event, expects_record});
    return Result::kArmed;
  }
  const bool is_whole = ReadProcStat(pid, &stat) && !stat.IsZombie() && !HasDeadThread(pid, stat);
  if (is_whole && !is_over) set_.NoteWhole(identity);
  if (!armed_ || is_over || !is_whole) {
    doubts_.push_back({identity, std::move(pidfd), alive_ns, CauseOfDead()});
    if (armed_) wake_();
  }
  return options_.opens_pidfds ? Result::kWithoutPidfd : Result::kArmed;
}

// The same without a pidfd: the start time distinguishes the process from others that get its pid.
// Only the stream reports its exit; without a stream the watch fails with `error`.
WatchedProcesses::Result WatchedProcesses::AddByNumber(int32_t pid, uint64_t start_ticks,
                                                       uint64_t inode, SystemError* error) {
  ProcStat stat;
  const ProcessState before = LookAtNumber(pid, &stat);
  if (before == ProcessState::kGone) return Result::kGone;
  if (before == ProcessState::kUnknown) {
    *error = {Failure::kNoProc, errno, "open"};
    return Result::kFailed;
  }
  if (stat.start_ticks != start_ticks) return Result::kGone;
  const std::optional<uint32_t> uid = ReadProcUid(pid);
  owner_clock_.Sample();
  const uint64_t now_ns = owner_clock_.Now();

  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream_ == StreamKind::kNone) return Result::kFailed;
  *error = {};
  set_.Add({pid, ProcessEntry(stat, inode, uid), now_ns, 0, -1},
           [this] { return owner_clock_.Now(); });
  const ProcessState after = LookAtNumber(pid, &stat);
  const bool is_known = after == ProcessState::kAlive || after == ProcessState::kDead;
  if (after == ProcessState::kGone || (is_known && stat.start_ticks != start_ticks)) {
    // If the watch is already taken, the stream has reported the exit, which is on its way.
    if (!set_.Remove(pid, start_ticks, inode)) return Result::kWithoutPidfd;
    return Result::kGone;
  }
  const bool is_whole =
      after == ProcessState::kAlive && !stat.IsZombie() && !HasDeadThread(pid, stat);
  if (is_whole) set_.NoteWhole({pid, start_ticks, inode, 0, 0});
  if (!armed_ || !is_whole) {
    const uint64_t alive_ns =
        after == ProcessState::kAlive ? now_ns : owner_clock_.TimeOfTick(start_ticks);
    doubts_.push_back({{pid, start_ticks, inode, 0, 0}, UniqueFd(), alive_ns, CauseOfDead()});
    if (armed_) wake_();
  }
  return options_.opens_pidfds ? Result::kWithoutPidfd : Result::kArmed;
}

// For a process that was dying when its watch began.
ThreadGroup::Cause WatchedProcesses::CauseOfDead() const {
  return armed_ && options_.reports_all ? ThreadGroup::Cause::kWatched : ThreadGroup::Cause::kFound;
}

void WatchedProcesses::Remove(int32_t pid, uint64_t start_ticks, uint64_t inode) {
  if (const std::optional<Watch> watch = set_.Remove(pid, start_ticks, inode)) Release(*watch);
  const std::lock_guard<std::mutex> lock(mutex_);
  const GroupIdentity identity = {pid, start_ticks, inode, 0, 0};
  doubts_.erase(
      std::remove_if(doubts_.begin(), doubts_.end(),
                     [&](const Doubt& doubt) { return IsSameGroup(doubt.identity, identity); }),
      doubts_.end());
  if (!armed_) return;
  removed_.push_back(pid);
  wake_();
}

// Closes the pidfd of a removed watch, unless the aggregator has it.
void WatchedProcesses::Release(const Watch& watch) {
  if (watch.pidfd < 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = pinned_.find(watch.pidfd);
  if (found != pinned_.end() && IsSameGroup(found->second.identity, watch.Identity())) {
    pinned_.erase(found);
  }
}

void WatchedProcesses::SetStream(StreamKind stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stream_ = stream;
  for (auto& [fd, pinned] : pinned_) {
    pinned.expects_record = stream == StreamKind::kGroups && !IsOver(LookAtPidfd(fd));
    pinned.expects_event = pinned.expects_event && stream != StreamKind::kNone;
  }
}

void WatchedProcesses::Arm() {
  const std::lock_guard<std::mutex> lock(mutex_);
  armed_ = true;
}

void WatchedProcesses::Check(ProcessWitness& witness, ThreadGroupAggregator& aggregator) {
  std::vector<Doubt> doubts;
  std::vector<int32_t> removed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    doubts.swap(doubts_);
    removed.swap(removed_);
  }
  for (const int32_t pid : removed) {
    if (!options_.reports_all && !set_.Contains(pid)) aggregator.Forget(pid);
  }
  for (Doubt& doubt : doubts) {
    if (set_.Contains(doubt.identity.pid)) CheckDoubt(doubt, witness, aggregator);
  }
}

void WatchedProcesses::CheckDoubt(Doubt& doubt, ProcessWitness& witness,
                                  ThreadGroupAggregator& aggregator) {
  const int32_t pid = doubt.identity.pid;
  const bool is_pinned = static_cast<bool>(doubt.pidfd);
  ProcessWitness::Handle handle = doubt.pidfd.Release();
  const ProcessState state = is_pinned ? witness.Look(handle) : witness.Open(pid, &handle);
  if (!is_pinned && state == ProcessState::kUnknown) {
    const std::lock_guard<std::mutex> lock(mutex_);
    doubts_.push_back(std::move(doubt));  // for next time
    return;
  }
  ProcStat stat;
  const bool has_stat = !IsOver(state) && witness.ReadStat(pid, &stat);
  const bool is_gone =
      !is_pinned && (state == ProcessState::kGone || !IsOf(doubt.identity, handle, witness));
  if (is_gone) {
    witness.Close(handle);
    aggregator.Presume(doubt.identity, doubt.alive_ns, doubt.cause);
  } else if (has_stat && !stat.IsZombie() && !HasDeadThread(pid, stat)) {
    witness.Close(handle);
  } else {
    aggregator.Adopt(doubt.identity, handle, doubt.alive_ns, doubt.cause);
  }
}

// For a process whose pidfd reported its death.
ThreadGroup::Outstanding WatchedProcesses::OutstandingOf(const Pinned& pinned,
                                                         bool records_come) const {
  using Outstanding = ThreadGroup::Outstanding;
  if (pinned.expects_record) return records_come ? Outstanding::kRecord : Outstanding::kLost;
  return pinned.expects_event ? Outstanding::kEvent : Outstanding::kNothing;
}

void WatchedProcesses::OnReady(const PidfdSet::Ready& ready, uint64_t not_ready_ns,
                               bool records_come, ThreadGroupAggregator& aggregator) {
  if (std::optional<Pinned> pinned = TakeDead(ready.pidfd, ready.pid)) {
    if (pinned->cause == ThreadGroup::Cause::kPidfd) {
      pinned->alive_ns = std::max(pinned->alive_ns, not_ready_ns);
    }
    aggregator.AdoptDead(pinned->identity, pinned->pidfd.Release(), pinned->alive_ns, pinned->cause,
                         OutstandingOf(*pinned, records_come));
  } else {
    aggregator.OnHandleReady(ready.pid, not_ready_ns);
  }
}

// Takes what this pidfd pins if its process is dead.
std::optional<WatchedProcesses::Pinned> WatchedProcesses::TakeDead(int pidfd, int32_t pid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = pinned_.find(pidfd);
  if (found == pinned_.end() || found->second.identity.pid != pid) return {};
  if (!IsOver(LookAtPidfd(pidfd))) return {};
  Pinned pinned = std::move(found->second);
  pinned_.erase(found);
  return pinned;
}

std::optional<Watch> WatchedProcesses::Take(const GroupIdentity& identity, uint64_t end_ns) {
  const std::optional<Watch> watch = set_.Take(identity, end_ns);
  if (watch) Release(*watch);
  return watch;
}

WatchedProcesses::Ended WatchedProcesses::CheckAll(ProcessWitness& witness,
                                                   ThreadGroupAggregator& aggregator,
                                                   uint64_t reported_ns) {
  Ended ended;
  bool has_stream;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    has_stream = stream_ != StreamKind::kNone;
  }
  for (const Watch& watch : set_.List()) {
    if (watch.pidfd >= 0) {
      std::optional<Pinned> pinned = TakeDead(watch.pidfd, watch.pid);
      if (!pinned) continue;
      ended.count++;
      const uint64_t alive_ns = std::max(pinned->alive_ns, reported_ns);
      aggregator.AdoptDead(pinned->identity, pinned->pidfd.Release(), alive_ns,
                           ThreadGroup::Cause::kLost, ThreadGroup::Outstanding::kNothing);
    } else if (aggregator.IsEndingOther(watch.Identity())) {
      ended.is_complete = false;  // the process that has, or had, its pid comes first
    } else if (!aggregator.IsEnding(watch.pid)) {
      const Rechecked found =
          Recheck(watch.Identity(), std::max(watch.since_ns, reported_ns), witness, aggregator);
      if (found == Rechecked::kEnded) ended.count++;
      if (found == Rechecked::kUnknown || !has_stream) ended.is_complete = false;
    }
  }
  return ended;
}

void WatchedProcesses::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  doubts_.clear();
  pinned_.clear();
  pidfds_.Close();
}

}  // namespace exitwatch
