// One idea: the programs and maps of a recorder, from their creation to what they have counted.
#include "linux/recorder/recorder.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "linux/bpf/bpf_permission.h"
#include "linux/bpf/bpf_program.h"
#include "linux/bpf/bpf_syscall.h"
#include "linux/system/kernel_clock.h"
#include "linux/system/namespaces.h"

namespace exitwatch {

namespace {

constexpr uint32_t kNoEntry = 0;  // the only key of an array with one entry
constexpr std::chrono::seconds kTellAgain(10);
constexpr uint64_t kMargin = 1'000'000;  // ns that an update of a map hardly ever takes

uint64_t Secret() {
  uint64_t random = 0;
  // While the machine boots there may be nothing random yet.
  if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) {
    random = KernelClock().Now() * 0x9e3779b97f4a7c15;
  }
  return random | 1;
}

}  // namespace

BpfRefusal Recorder::Create(KernelTypes& types, const RecorderAbout& about) {
  using Reason = BpfRefusal::Reason;
  if (BpfRefusal refusal = AskBpfPermission()) return refusal;
  // The kernel's pids are those of the host's namespace.
  if (!InInitialPidNamespace()) return {Reason::kForeignPid, 0, ""};
  about_ = about;
  about_.magic = RecorderAbout::kMagic;
  about_.layout = kRecorderLayout;
  if (about_.ring_bytes != 0) about_.ring_bytes = RoundUpToRingBytes(about_.ring_bytes);
  about_.signal_bytes = RoundUpToRingBytes(about_.signal_bytes);
  if (BpfRefusal refusal = CreateMaps()) return refusal;
  if (BpfRefusal refusal = Load(types)) return refusal;
  SetLease(UINT64_MAX);  // until its creator sets one
  return Attach();
}

BpfRefusal Recorder::CreateMaps() {
  RecorderParts::Maps& maps = parts_.maps;
  const uint32_t slots = about_.slots;
  maps.about = bpf::CreateMap("exitwatch_about", bpf::kArray, 4, sizeof(RecorderAbout), 1, 0);
  maps.state =
      bpf::CreateMap("exitwatch_rec", bpf::kArray, 4, sizeof(RecorderState), 1, bpf::kMmapable);
  maps.trace_state = bpf::CreateMap("exitwatch_trace", bpf::kArray, 4, sizeof(SignalTraceState), 1,
                                    bpf::kMmapable);
  maps.watched = bpf::CreateMap("exitwatch_watch", bpf::kHash, sizeof(RecorderKey),
                                sizeof(RecordedProcess), slots, 0);
  maps.exits = bpf::CreateMap("exitwatch_exits", bpf::kHash, sizeof(RecorderKey),
                              sizeof(RecordedExit), slots, 0);
  maps.kept = bpf::CreateMap("exitwatch_kept", bpf::kHash, sizeof(RecordedSignalKey),
                             sizeof(SignalRecord), KeptSignals(slots), 0);
  maps.signals = bpf::CreateMap("exitwatch_rsig", bpf::kRingbuf, 0, 0,
                                static_cast<uint32_t>(about_.signal_bytes), 0);
  maps.marks =
      bpf::CreateMap("exitwatch_marks", bpf::kArray, 4, sizeof(uint64_t), kRecorderMarks, 0);
  for (const UniqueFd* map : {&maps.about, &maps.state, &maps.trace_state, &maps.watched,
                              &maps.exits, &maps.kept, &maps.signals, &maps.marks}) {
    if (!*map) return BpfSystemRefusal("BPF_MAP_CREATE");
  }
  if (about_.ring_bytes != 0) {
    maps.ring = bpf::CreateMap("exitwatch_rexit", bpf::kRingbuf, 0, 0,
                               static_cast<uint32_t>(about_.ring_bytes), 0);
    if (!maps.ring) return BpfSystemRefusal("BPF_MAP_CREATE");
    ring_cgroups_.Open();
  }
  signal_cgroups_.Open();
  if (!MapAll()) return BpfSystemRefusal("mmap");
  return {};
}

BpfRefusal Recorder::Load(KernelTypes& types) {
  KernelLayout groups;
  if (BpfRefusal refusal = types.ForGroups(&groups)) return refusal;
  SignalLayout signals;
  if (BpfRefusal refusal = types.ForSignals(&signals)) return refusal;
  // Where it is not known from registers: no smaller than a page (arch/arm64's <asm/memory.h>).
  signals.stack_bytes = std::max(signals.stack_bytes, static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  about_.has_inodes = groups.pid.inode ? 1 : 0;

  const RecorderParts::Maps& maps = parts_.maps;
  const RecorderMaps shared = {maps.state.Get(),   maps.watched.Get(),
                               maps.exits.Get(),   maps.kept.Get(),
                               maps.ring.Get(),    maps.signals.Get(),
                               ring_cgroups_.fd(), signal_cgroups_.fd(),
                               maps.marks.Get(),   Secret()};
  SignalTraceMaps trace = {-1, 0, maps.trace_state.Get(), -1, -1};
  trace.recorder = &shared;
  const auto load = [](const char* name, const std::vector<bpf_insn>& program, UniqueFd* loaded) {
    return LoadBpfProgram(name, bpf::kRawTracepoint, program, loaded);
  };
  RecorderParts::Programs& programs = parts_.programs;
  using Reason = BpfRefusal::Reason;
  const auto load_exit = [&](bool has_tai) {
    const auto build = [&](RecorderTurn turn) {
      return BuildRecorderProgram(groups, shared, has_tai, turn);
    };
    BpfRefusal refusal = load("exitwatch_rexit", build(RecorderTurn::kFirst), &programs.exit);
    if (!refusal) refusal = load("exitwatch_rback", build(RecorderTurn::kBackup), &programs.backup);
    if (!refusal) refusal = load("exitwatch_rnote", build(RecorderTurn::kNotice), &programs.notice);
    return refusal;
  };
  BpfRefusal refusal = load_exit(true);  // bpf_ktime_get_tai_ns is Linux 6.1's
  if (refusal.reason == Reason::kOtherKernel) refusal = load_exit(false);
  if (refusal) return refusal;
  refusal = load("exitwatch_rsig", BuildSignalProgram(signals, trace), &programs.signal);
  // bpf_task_pt_regs is Linux 5.15's.
  if (refusal.reason == Reason::kOtherKernel && signals.syscall) {
    signals.syscall.reset();
    refusal = load("exitwatch_rsig", BuildSignalProgram(signals, trace), &programs.signal);
  }
  if (refusal) return refusal;
  refusal = load("exitwatch_rtak", BuildTakenProgram(signals, trace), &programs.taken);
  if (refusal) return refusal;
  return load("exitwatch_room", BuildOomProgram(signals, trace), &programs.oom);
}

BpfRefusal Recorder::Attach() {
  const RecorderParts::Programs& programs = parts_.programs;
  RecorderParts::Programs& links = parts_.links;
  const struct {
    const char* tracepoint;
    const UniqueFd& program;
    UniqueFd* link;
  } attached[] = {{"mark_victim", programs.oom, &links.oom},
                  {"signal_deliver", programs.taken, &links.taken},
                  {"signal_generate", programs.signal, &links.signal},
                  {"signal_generate", programs.notice, &links.notice},
                  {"sched_process_exit", programs.exit, &links.exit},
                  {"sched_process_exit", programs.backup, &links.backup}};
  for (const auto& [tracepoint, program, link] : attached) {
    *link = bpf::OpenRawTracepoint(tracepoint, program.Get());
    if (!*link) return BpfSystemRefusal(tracepoint);
  }
  const KernelClock clock;
  about_.since_ns = clock.Now();
  SetState(offsetof(RecorderState, misses_read_ns), clock.BootNow());
  if (!bpf::Update(parts_.maps.about.Get(), &kNoEntry, &about_, BPF_ANY)) {
    return BpfSystemRefusal("BPF_MAP_UPDATE_ELEM");
  }
  return {};
}

SystemError Recorder::Trust() {
  about_.is_trusted = 1;
  if (bpf::Update(parts_.maps.about.Get(), &kNoEntry, &about_, BPF_ANY)) return {};
  return {Failure::kSystem, errno, "BPF_MAP_UPDATE_ELEM"};
}

bool Recorder::MapAll() {
  const RecorderParts::Maps& maps = parts_.maps;
  return state_.Map(maps.state.Get(), sizeof(RecorderState), PROT_READ | PROT_WRITE) &&
         signals_.Open(maps.signals.Get(), about_.signal_bytes) &&
         (about_.ring_bytes == 0 || ring_.Open(maps.ring.Get(), about_.ring_bytes));
}

RecorderKey Recorder::KeyOf(int32_t pid, uint64_t start_ticks, uint64_t inode) const {
  if (about_.has_inodes != 0) return {inode, 0};
  return {static_cast<uint64_t>(pid), start_ticks};
}

bool Recorder::Watch(const RecorderKey& key) {
  const KernelClock clock;
  // What the entry promises must hold when the kernel has it.
  for (uint64_t margin_ns = kMargin;; margin_ns *= 2) {
    const RecordedProcess process = {0, clock.Now() + margin_ns};
    if (!bpf::Update(parts_.maps.watched.Get(), &key, &process, BPF_NOEXIST)) return false;
    if (clock.Now() <= process.since_ns) return true;
    bpf::Delete(parts_.maps.watched.Get(), &key);
  }
}

void Recorder::Forget(const RecorderKey& key) {
  const RecorderParts::Maps& maps = parts_.maps;
  RecordedProcess process = {};
  bpf::Lookup(maps.watched.Get(), &key, &process);
  bpf::Delete(maps.watched.Get(), &key);
  bpf::Delete(maps.exits.Get(), &key);
  if (process.has_signals == 0) return;
  for (uint64_t slot = 0; slot <= kDefaultSlot + kMostSignals; slot++) {
    const RecordedSignalKey signal = {key, slot};
    bpf::Delete(maps.kept.Get(), &signal);
  }
}

std::vector<RecorderKey> Recorder::Watched() const {
  std::vector<RecorderKey> keys;
  RecorderKey key;
  const void* previous = nullptr;
  while (keys.size() < about_.slots && bpf::NextKey(parts_.maps.watched.Get(), previous, &key)) {
    keys.push_back(key);
    previous = &key;
  }
  return keys;
}

void Recorder::Retain(const std::vector<RecorderKey>& keys) {
  const auto bytes = [](const RecorderKey& key) {
    return std::make_pair(key.process, key.start_ticks);
  };
  std::set<std::pair<uint64_t, uint64_t>> retained;
  for (const RecorderKey& key : keys) retained.insert(bytes(key));
  for (const RecorderKey& key : Watched()) {
    if (retained.count(bytes(key)) == 0) Forget(key);
  }
}

bool Recorder::Find(const RecorderKey& key, RecordedExit* exit, uint64_t* since_ns) const {
  RecordedProcess process = {};
  if (!bpf::Lookup(parts_.maps.watched.Get(), &key, &process)) return false;
  *since_ns = std::max(process.since_ns, about_.since_ns);
  return bpf::Lookup(parts_.maps.exits.Get(), &key, exit);
}

std::vector<SignalRecord> Recorder::SignalsOf(const RecorderKey& key) const {
  std::vector<SignalRecord> signals;
  RecordedProcess process = {};
  if (!bpf::Lookup(parts_.maps.watched.Get(), &key, &process) || process.has_signals == 0) {
    return signals;
  }
  for (uint64_t slot = 0; slot <= kDefaultSlot + kMostSignals; slot++) {
    const RecordedSignalKey signal = {key, slot};
    SignalRecord record;
    if (bpf::Lookup(parts_.maps.kept.Get(), &signal, &record)) signals.push_back(record);
  }
  std::sort(signals.begin(), signals.end(),
            [](const SignalRecord& a, const SignalRecord& b) { return a.time_ns < b.time_ns; });
  return signals;
}

bool Recorder::MayTellCgroups() const {
  return has_paths_ && RingUsed() < about_.ring_bytes / 16 &&
         std::chrono::steady_clock::now() - told_at_ >= kTellAgain;
}

void Recorder::TellCgroups() {
  has_paths_ = false;
  told_at_ = std::chrono::steady_clock::now();
  ring_cgroups_.Forget();
}

void Recorder::EndReading() {
  ring_cgroups_.Forget();
  signal_cgroups_.Forget();
}

void Recorder::SetLease(uint64_t until_ns) {
  SetState(offsetof(RecorderState, lease_ns), until_ns);
}

void Recorder::SetDelivered(uint64_t position) {
  if (position > Delivered()) SetState(offsetof(RecorderState, delivered), position);
}

void Recorder::SetState(size_t offset, uint64_t value) {
  __atomic_store_n(state_.At<uint64_t>(offset), value, __ATOMIC_RELAXED);
}

uint64_t Recorder::StateAt(size_t offset) const {
  return __atomic_load_n(state_.At<uint64_t>(offset), __ATOMIC_RELAXED);
}

RecorderLoss Recorder::Loss(size_t offset) const {
  return {StateAt(offset + offsetof(RecorderLoss, count)),
          StateAt(offset + offsetof(RecorderLoss, first_ns)),
          StateAt(offset + offsetof(RecorderLoss, last_ns)),
          StateAt(offset + offsetof(RecorderLoss, reported))};
}

void Recorder::AcknowledgeLoss(size_t offset, uint64_t count) {
  const RecorderLoss loss = Loss(offset);
  SetState(offset + offsetof(RecorderLoss, reported), std::min(loss.count, loss.reported + count));
  SetState(offset + offsetof(RecorderLoss, first_ns), 0);
}

void Recorder::CountMisses(uint64_t boot_ns) {
  const auto misses_of = [](const UniqueFd& program) {
    bpf::ProgramInfo info;
    return program && bpf::ReadProgramInfo(program.Get(), &info) ? info.misses : 0;
  };
  const RecorderParts::Programs& all = parts_.programs;  // an exit is lost if all were left out
  const uint64_t both = std::min(misses_of(all.exit), misses_of(all.backup));
  const uint64_t misses = both - std::min(both, StateAt(offsetof(RecorderState, noticed)));
  const uint64_t before_ns = StateAt(offsetof(RecorderState, misses_read_ns));
  SetState(offsetof(RecorderState, misses_read_ns), boot_ns);
  auto* shared = state_.At<uint64_t>(offsetof(RecorderState, misses));
  uint64_t counted = StateAt(offsetof(RecorderState, misses));
  if (misses <= counted || !__atomic_compare_exchange_n(shared, &counted, misses, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    return;
  }
  constexpr size_t kExits = offsetof(RecorderState, exits);
  __atomic_fetch_add(state_.At<uint64_t>(kExits + offsetof(RecorderLoss, count)), misses - counted,
                     __ATOMIC_RELAXED);
  const size_t first = kExits + offsetof(RecorderLoss, first_ns);
  if (StateAt(first) == 0 || StateAt(first) > before_ns) SetState(first, before_ns);
  SetState(kExits + offsetof(RecorderLoss, last_ns), boot_ns);
}

std::vector<Recorder::Program> Recorder::Programs() const {
  std::vector<Program> programs;
  const RecorderParts::Programs& all = parts_.programs;
  const struct {
    const char* name;
    const UniqueFd& fd;
  } each[] = {{"exit", all.exit},     {"backup", all.backup}, {"notice", all.notice},
              {"signal", all.signal}, {"taken", all.taken},   {"oom", all.oom}};
  for (const auto& [name, fd] : each) {
    bpf::ProgramInfo info;
    if (fd && bpf::ReadProgramInfo(fd.Get(), &info)) programs.push_back({name, info});
  }
  return programs;
}

}  // namespace exitwatch
