// One idea: a single program, each part of which continues with the registers and the stack of the
// part before.
#include "core/bpf/group_filter.h"

#include "core/bpf/kernel_program.h"
#include "core/parse/proc_event.h"

namespace exitwatch {

namespace {

using Asm = BpfAssembler;

constexpr int32_t kPass = -1;  // pass the whole message
constexpr int32_t kDrop = 0;

// After 5 ms, assume that the reader is busy.
constexpr int32_t kInVainNs = 5'000'000;

// From the kernel's <linux/sched.h> and <linux/sched/signal.h>.
constexpr int32_t kTaskExiting = 0x00000004;       // PF_EXITING
constexpr int32_t kTaskKernelThread = 0x00200000;  // PF_KTHREAD
constexpr int32_t kGroupExit = 0x00000004;         // SIGNAL_GROUP_EXIT

// The process is dead, and the record has its first thread's start.
constexpr int32_t kWhole = GroupRecord::kDead | GroupRecord::kFirstThread;

// The stack below kScratch: the message's event, the record, two slots.
constexpr int16_t kEventBytes = wire::kDatagramBytes - wire::kEvent;
constexpr int16_t kEventAt = -8 - kEventBytes;
constexpr int16_t kRecord = kEventAt - static_cast<int16_t>(sizeof(GroupReport));
constexpr int16_t kSlotsAt = kRecord - 16;
constexpr int16_t kThreadsAt = kSlotsAt;  // used before TellCgroup() uses the slots
constexpr int16_t kSequenceAt = kSlotsAt;

constexpr int16_t EventField(uint32_t wire_offset) {
  return static_cast<int16_t>(kEventAt + static_cast<int16_t>(wire_offset - wire::kEvent));
}

constexpr int16_t RecordField(size_t offset) {
  return static_cast<int16_t>(kRecord + static_cast<int16_t>(offset));
}

// Registers that calls preserve. Each has one meaning throughout the program.
constexpr Asm::Register kOther = Asm::kR6;  // the object being followed
constexpr Asm::Register kTask = Asm::kR7;
constexpr Asm::Register kSignal = Asm::kR8;  // its signal_struct
constexpr Asm::Register kFirst = Asm::kR9;   // the first thread of its group

class Program : KernelProgram {
 public:
  Program(const KernelLayout& layout, const GroupFilterMaps& maps) : layout_(layout), maps_(maps) {}

  std::vector<bpf_insn> Build(uint32_t own_tgid) {
    pass_ = code_.NewLabel();
    drop_ = code_.NewLabel();
    LookAtMessage(own_tgid);
    LookAtTask();
    if (maps_.watched >= 0) {
      RequireWatched(maps_.watched, EventField(wire::kExitTgid), drop_);
    }
    LookAtGroup();
    FillRecord();
    if (maps_.notes >= 0) TakeNote();
    if (layout_.usage) ReadUsage(*layout_.usage);
    if (layout_.cgroup) {
      TellCgroup(*layout_.cgroup, kTask, kOther, RecordField(offsetof(GroupRecord, cgroup)),
                 maps_.cgroups, maps_.ring, kSlotsAt);
    }
    ChooseWakeup();
    WriteRecord(maps_.ring, kRecord, sizeof(GroupReport), maps_.state,
                offsetof(GroupFilterState, lost));
    RingDoorbell();
    code_.Bind(drop_);
    code_.Set(Asm::kR0, kDrop);
    code_.Exit();
    code_.Bind(pass_);
    code_.Set(Asm::kR0, kPass);
    code_.Exit();
    return code_.Finish();
  }

 private:
  void LoadEvent(Asm::Register to, uint32_t wire_offset) {
    code_.Load(Asm::kWord, to, Asm::kFrame, EventField(wire_offset));
  }

  void SetFlag(uint32_t flag) {
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(GroupRecord, flags)));
    code_.Compute(BPF_OR, Asm::kR1, static_cast<int32_t>(flag));
    code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(GroupRecord, flags)), Asm::kR1);
  }

  void LookAtMessage(uint32_t own_tgid) {
    code_.Set(Asm::kR2, wire::kEvent);
    code_.Move(Asm::kR3, Asm::kFrame);
    code_.Compute(BPF_ADD, Asm::kR3, kEventAt);
    code_.Set(Asm::kR4, kEventBytes);
    code_.Call(Asm::kSkbLoadBytes);
    code_.JumpIf(BPF_JNE, Asm::kR0, 0, pass_);
    LoadEvent(Asm::kR1, wire::kWhat);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, static_cast<int32_t>(kProcEventNone), pass_);
    code_.JumpIf32(BPF_JNE, Asm::kR1, static_cast<int32_t>(kProcEventExit), drop_);
    LoadEvent(Asm::kR1, wire::kExitTgid);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, static_cast<int32_t>(own_tgid), pass_);
  }

  void LookAtTask() {
    code_.Call(Asm::kGetCurrentTask);
    code_.Move(kTask, Asm::kR0);
    ReadWord(Asm::kR1, kTask, layout_.task.pid);
    LoadEvent(Asm::kR2, wire::kExitPid);
    code_.JumpIf32(BPF_JNE, Asm::kR1, Asm::kR2, pass_);
    ReadWord(Asm::kR1, kTask, layout_.task.tgid);
    LoadEvent(Asm::kR2, wire::kExitTgid);
    code_.JumpIf32(BPF_JNE, Asm::kR1, Asm::kR2, pass_);
    ReadWord(Asm::kR1, kTask, layout_.task.flags);
    code_.JumpIf32(BPF_JSET, Asm::kR1, kTaskKernelThread, drop_);
    const Asm::Label exiting = code_.NewLabel();
    code_.JumpIf32(BPF_JSET, Asm::kR1, kTaskExiting, exiting);
    code_.Jump(pass_);
    code_.Bind(exiting);
  }

  // If there is something to report, continues with kSignal and kFirst set, and with the record's
  // flags and status.
  void LookAtGroup() {
    Clear(kRecord, sizeof(GroupReport));
    const Asm::Label is_first = code_.NewLabel();
    const Asm::Label has_first = code_.NewLabel();
    const Asm::Label not_dead = code_.NewLabel();
    const Asm::Label ending = code_.NewLabel();
    const Asm::Label is_dead = code_.NewLabel();
    const Asm::Label done = code_.NewLabel();

    ReadPointer(kSignal, kTask, layout_.task.signal);
    // Read this before the number of threads: a debugger may release the thread at any time, which
    // first decrements the number and then clears the thread's pid.
    ReadPointer(kOther, kTask, layout_.task.thread_pid);
    LoadEvent(Asm::kR1, wire::kExitPid);
    LoadEvent(Asm::kR2, wire::kExitTgid);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, Asm::kR2, is_first);
    ReadPointer(kFirst, kTask, layout_.task.group_leader);
    code_.Jump(has_first);
    code_.Bind(is_first);
    code_.Move(kFirst, kTask);
    code_.Bind(has_first);

    ReadWord(Asm::kR1, kSignal, layout_.signal.flags);
    code_.JumpIf32(BPF_JSET, Asm::kR1, kGroupExit, ending);
    if (!layout_.signal.always_has_code) LookAtEachThread(is_dead, not_dead);
    code_.Jump(not_dead);

    code_.Bind(ending);
    SetFlag(GroupRecord::kStatusKnown);
    Read(RecordField(offsetof(GroupRecord, status)), 4, kSignal, layout_.signal.group_exit_code);
    // When a thread other than the first reports its exit, it is no longer counted.
    ReadWord(Asm::kR1, kSignal, layout_.signal.threads);
    code_.JumpIf32(BPF_JGT, Asm::kR1, 1, not_dead);
    // No thread is left: the first one was already reaped, and its task may be freed.
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, is_dead);
    code_.JumpIf(BPF_JEQ, kFirst, kTask, is_dead);
    ReadWord(Asm::kR1, kFirst, layout_.task.exit_state);
    code_.JumpIf32(BPF_JNE, Asm::kR1, 0, is_dead);

    code_.Bind(not_dead);
    code_.JumpIf(BPF_JEQ, kFirst, kTask, drop_);
    // Without a debugger, the thread has been released and has no pid any more.
    code_.JumpIf(BPF_JEQ, kOther, 0, drop_);
    SetFlag(GroupRecord::kPtraced);
    code_.Jump(done);
    code_.Bind(is_dead);
    SetFlag(GroupRecord::kDead);
    code_.Bind(done);
  }

  // The same for a group without SIGNAL_GROUP_EXIT: its threads exited one by one, or are exiting
  // for one that calls exec.
  void LookAtEachThread(Asm::Label is_dead, Asm::Label not_dead) {
    const Asm::Label has_ended = code_.NewLabel();
    ReadWord(Asm::kR1, kSignal, layout_.signal.threads);
    code_.JumpIf32(BPF_JGT, Asm::kR1, 1, not_dead);
    code_.Store(Asm::kWord, Asm::kFrame, kThreadsAt, Asm::kR1);
    // A thread that calls exec takes over the first thread's pid, and then decrements the number
    // (fs/exec.c, de_thread()). If the task now has another pid, or belongs to another group, it
    // was not the first thread of this group when the number was read.
    ReadPointer(Asm::kR1, kFirst, layout_.task.signal);
    code_.JumpIf(BPF_JNE, Asm::kR1, kSignal, has_ended);
    ReadWord(Asm::kR1, kFirst, layout_.task.pid);
    LoadEvent(Asm::kR2, wire::kExitTgid);
    code_.JumpIf32(BPF_JNE, Asm::kR1, Asm::kR2, has_ended);
    ReadWord(Asm::kR1, kFirst, layout_.task.exit_state);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, not_dead);
    SetFlag(GroupRecord::kStatusKnown);
    Read(RecordField(offsetof(GroupRecord, status)), 4, kFirst, layout_.task.exit_code);
    code_.Jump(is_dead);

    // No thread is left, but the status can no longer be determined.
    code_.Bind(has_ended);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, kThreadsAt);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, is_dead);
  }

  void FillRecord() {
    const Asm::Label filled = code_.NewLabel();
    const Asm::Label alone = code_.NewLabel();
    const Asm::Label is_first = code_.NewLabel();

    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, EventField(wire::kTimestamp));
    code_.Store(Asm::kDouble, Asm::kFrame, RecordField(offsetof(GroupRecord, time_ns)), Asm::kR1);
    LoadEvent(Asm::kR1, wire::kExitTgid);
    code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(GroupRecord, pid)), Asm::kR1);
    code_.Store(Asm::kDouble, Asm::kFrame, RecordField(offsetof(GroupRecord, group)), kSignal);
    ReadPointer(kOther, kTask, layout_.task.cred);
    Read(RecordField(offsetof(GroupRecord, uid)), 4, kOther, layout_.cred.euid);
    if (layout_.cgroup)
      ReadCgroup(*layout_.cgroup, kTask, kOther, RecordField(offsetof(GroupRecord, cgroup)));
    // Every task that is not freed yet holds a reference to its group.
    ReadWord(Asm::kR1, kSignal, layout_.signal.references);
    code_.JumpIf32(BPF_JLE, Asm::kR1, 1, alone);
    SetFlag(GroupRecord::kMayBeRepeated);
    code_.Bind(alone);

    // If the first thread was reaped, its memory may belong to another task by now. It is still the
    // first thread only if its group and its pid match.
    code_.JumpIf(BPF_JEQ, kFirst, kTask, is_first);
    ReadPointer(Asm::kR1, kFirst, layout_.task.signal);
    code_.JumpIf(BPF_JNE, Asm::kR1, kSignal, filled);
    ReadWord(Asm::kR1, kFirst, layout_.task.pid);
    LoadEvent(Asm::kR2, wire::kExitTgid);
    code_.JumpIf32(BPF_JNE, Asm::kR1, Asm::kR2, filled);
    code_.Bind(is_first);
    SetFlag(GroupRecord::kFirstThread);
    Read(RecordField(offsetof(GroupRecord, start_ns)), 8, kFirst, layout_.task.start_boottime);
    Read(RecordField(offsetof(GroupRecord, name)), kNameBytes, kFirst, layout_.task.comm);
    // A reaped thread has no pid, and the kernel no longer updates its parent.
    ReadPointer(kOther, kFirst, layout_.task.thread_pid);
    code_.JumpIf(BPF_JEQ, kOther, 0, filled);
    if (layout_.pid.inode) {
      Read(RecordField(offsetof(GroupRecord, inode)), 8, kOther, *layout_.pid.inode);
    }
    ReadPointer(kOther, kFirst, layout_.task.real_parent);
    Read(RecordField(offsetof(GroupRecord, parent_pid)), 4, kOther, layout_.task.tgid);
    // It may be another thread of the parent.
    ReadPointer(kOther, kOther, layout_.task.group_leader);
    Read(RecordField(offsetof(GroupReport, parent_name)), kNameBytes, kOther, layout_.task.comm);
    code_.Bind(filled);
  }

  // The note is at r0.
  void Take(Asm::Size size, size_t to, size_t from) {
    code_.Load(size, Asm::kR1, Asm::kR0, static_cast<int16_t>(from));
    code_.Store(size, Asm::kFrame, RecordField(to), Asm::kR1);
  }

  // Continues there if this field of the record is not 0.
  void JumpIfKnown(Asm::Size size, size_t field, Asm::Label known) {
    code_.Load(size, Asm::kR1, Asm::kFrame, RecordField(field));
    code_.JumpIf(BPF_JNE, Asm::kR1, 0, known);
  }

  // Takes what the group's last thread noted. If two records are possible, both get it.
  void TakeNote() {
    const Asm::Label taken = code_.NewLabel();
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(GroupRecord, flags)));
    code_.Compute(BPF_AND, Asm::kR1, kWhole);
    code_.JumpIf(BPF_JNE, Asm::kR1, kWhole, taken);
    PointToKey();
    code_.Call(Asm::kMapLookup);
    code_.JumpIf(BPF_JEQ, Asm::kR0, 0, taken);
    for (size_t at = 0; at < kExecutableBytes; at += 8) {
      Take(Asm::kDouble, offsetof(GroupRecord, executable) + at,
           offsetof(ExitNote, executable) + at);
    }
    const Asm::Label has_inode = code_.NewLabel();
    JumpIfKnown(Asm::kDouble, offsetof(GroupRecord, inode), has_inode);
    Take(Asm::kDouble, offsetof(GroupRecord, inode), offsetof(ExitNote, inode));
    code_.Bind(has_inode);
    // The process may have another parent since the note: pid and name must be of the same one.
    const Asm::Label has_parent = code_.NewLabel();
    JumpIfKnown(Asm::kWord, offsetof(GroupRecord, parent_pid), has_parent);
    Take(Asm::kWord, offsetof(GroupRecord, parent_pid), offsetof(ExitNote, parent_pid));
    for (size_t at = 0; at < kNameBytes; at += 8) {
      Take(Asm::kDouble, offsetof(GroupReport, parent_name) + at,
           offsetof(ExitNote, parent_name) + at);
    }
    code_.Bind(has_parent);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(GroupRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(GroupRecord::kMayBeRepeated), taken);
    PointToKey();
    code_.Call(Asm::kMapDelete);
    code_.Bind(taken);
  }

  // Threads that were released are counted in the signal_struct; only the first one may not be
  // released yet. When another CPU reaps it, it adds that one's counters to the group's, one by one
  // (kernel/exit.c, __exit_signal()). What is read amid that would count some of them twice.
  void ReadUsage(const UsagePlaces& places) {
    constexpr int kTries = 3;
    const Asm::Label done = code_.NewLabel();
    constexpr auto kDead = static_cast<int32_t>(GroupRecord::kDead);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(GroupRecord, flags)));
    code_.Compute(BPF_AND, Asm::kR1, kDead);
    code_.JumpIf(BPF_JEQ, Asm::kR1, 0, done);
    SetFlag(GroupRecord::kUsageKnown);
    if (places.io) SetFlag(GroupRecord::kIoKnown);
    Read(UsageField(offsetof(ProcessUsage, max_rss_pages)), 8, kSignal, places.max_rss);
    for (int i = 0; i < kTries; i++) TryCounters(places, done);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(GroupRecord, flags)));
    code_.Compute(BPF_AND, Asm::kR1, ~(GroupRecord::kUsageKnown | GroupRecord::kIoKnown));
    code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(GroupRecord, flags)), Asm::kR1);
    code_.Bind(done);
  }

  // Goes to `done` if nothing was added to the group's counters meanwhile. As in the kernel's
  // read_seqretry(), but old kernels have no barrier for BPF programs: on arm64, only the calls in
  // between keep the reads in their order.
  void TryCounters(const UsagePlaces& places, Asm::Label done) {
    const Asm::Label released = code_.NewLabel();
    const Asm::Label check = code_.NewLabel();
    const Asm::Label changing = code_.NewLabel();
    AwaitCounters(places, changing);
    code_.Store(Asm::kWord, Asm::kFrame, kSequenceAt, Asm::kR1);
    // What was added is no longer counted as a thread, but may still look unreleased.
    ReadWord(Asm::kR1, kSignal, layout_.signal.threads);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, released);
    JumpIfReleased(released);
    ReadCounters(places, true);
    JumpIfReleased(released);
    code_.Jump(check);
    code_.Bind(released);
    ReadCounters(places, false);
    code_.Bind(check);
    ReadWord(Asm::kR1, kSignal, places.sequence);
    code_.Load(Asm::kWord, Asm::kR2, Asm::kFrame, kSequenceAt);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, Asm::kR2, done);
    code_.Bind(changing);
  }

  // Loads the sequence into r1 when nothing is being added, or goes to `changing` after a while:
  // that takes less than a microsecond, unless a hypervisor stops the other CPU. Not too many
  // looks: a socket has room for a filter of some 2,500 instructions (net.core.optmem_max, 20 KiB
  // before Linux 6.8).
  void AwaitCounters(const UsagePlaces& places, Asm::Label changing) {
    constexpr int kLooks = 16;
    const Asm::Label even = code_.NewLabel();
    for (int i = 0; i < kLooks; i++) {
      const Asm::Label odd = code_.NewLabel();
      ReadWord(Asm::kR1, kSignal, places.sequence);
      code_.JumpIf32(BPF_JSET, Asm::kR1, 1, odd);
      code_.Jump(even);
      code_.Bind(odd);
    }
    code_.Jump(changing);
    code_.Bind(even);
  }

  // The memory of a first thread that is gone may be another task's.
  void JumpIfReleased(Asm::Label released) {
    ReadPointer(Asm::kR1, kFirst, layout_.task.sighand);
    code_.JumpIf(BPF_JEQ, Asm::kR1, 0, released);
    ReadPointer(Asm::kR1, kFirst, layout_.task.signal);
    code_.JumpIf(BPF_JNE, Asm::kR1, kSignal, released);
  }

  void ReadCounters(const UsagePlaces& places, bool adds_first) {
    ReadCounter(offsetof(ProcessUsage, user_ns), places.user, adds_first);
    ReadCounter(offsetof(ProcessUsage, system_ns), places.system, adds_first);
    ReadCounter(offsetof(ProcessUsage, runtime_ns), places.runtime, adds_first);
    if (!places.io) return;
    ReadCounter(offsetof(ProcessUsage, read_bytes), places.io->read, adds_first);
    ReadCounter(offsetof(ProcessUsage, written_bytes), places.io->written, adds_first);
  }

  void ReadCounter(size_t field, const UsagePlaces::Counter& places, bool adds_first) {
    Read(UsageField(field), 8, kSignal, places.in_signal);
    if (!adds_first) return;
    ReadPointer(Asm::kR1, kFirst, places.in_task);
    code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, UsageField(field));
    code_.Compute(BPF_ADD, Asm::kR1, Asm::kR2);
    code_.Store(Asm::kDouble, Asm::kFrame, UsageField(field), Asm::kR1);
  }

  static constexpr int16_t UsageField(size_t offset) {
    return RecordField(offsetof(GroupReport, usage) + offset);
  }

  void PointToKey() {
    code_.SetMap(Asm::kR1, maps_.notes);
    code_.Move(Asm::kR2, Asm::kFrame);
    code_.Compute(BPF_ADD, Asm::kR2, RecordField(offsetof(GroupRecord, group)));
  }

  // Sets r4 to the flags of the write.
  void ChooseWakeup() {
    const Asm::Label chosen = code_.NewLabel();
    if (maps_.wake_above_bytes > 0) {
      WakeIfFull(chosen);
    } else {
      WakeFallbackReader(chosen);
    }
    code_.Set(Asm::kR4, kForceWakeup);
    code_.Bind(chosen);
  }

  void WakeIfFull(Asm::Label chosen) {
    const Asm::Label wake = code_.NewLabel();
    JumpIfFuller(maps_.ring, maps_.wake_above_bytes, wake);
    code_.Set(Asm::kR4, kNoWakeup);
    code_.Jump(chosen);
    code_.Bind(wake);
  }

  void WakeFallbackReader(Asm::Label chosen) {
    code_.Set(Asm::kR4, kNoWakeup);
    code_.SetMapValue(Asm::kR1, maps_.state, 0);
    code_.Load(Asm::kWord, Asm::kR2, Asm::kR1, offsetof(GroupFilterState, has_fallback_reader));
    code_.JumpIf32(BPF_JEQ, Asm::kR2, 0, chosen);
    code_.Load(Asm::kWord, Asm::kR2, Asm::kR1, offsetof(GroupFilterState, doorbell));
    code_.JumpIf32(BPF_JNE, Asm::kR2, 0, chosen);
    code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, RecordField(offsetof(GroupRecord, time_ns)));
    code_.Load(Asm::kDouble, Asm::kR3, Asm::kR1, offsetof(GroupFilterState, rung_ns));
    code_.Compute(BPF_SUB, Asm::kR2, Asm::kR3);
    // Signed: another CPU may have rung it later.
    code_.JumpIf(BPF_JSLE, Asm::kR2, kInVainNs, chosen);
  }

  void RingDoorbell() {
    code_.SetMapValue(Asm::kR1, maps_.state, 0);
    code_.Load(Asm::kWord, Asm::kR2, Asm::kR1, offsetof(GroupFilterState, doorbell));
    code_.JumpIf32(BPF_JEQ, Asm::kR2, 0, drop_);
    code_.Load(Asm::kDouble, Asm::kR3, Asm::kFrame, RecordField(offsetof(GroupRecord, time_ns)));
    code_.Store(Asm::kDouble, Asm::kR1, offsetof(GroupFilterState, rung_ns), Asm::kR3);
    // Another task may have rung it meanwhile: then two messages come, or an unrequested one.
    code_.StoreValue(Asm::kWord, Asm::kR1, offsetof(GroupFilterState, doorbell), 0);
    code_.Jump(pass_);
  }

  const KernelLayout& layout_;
  const GroupFilterMaps& maps_;
  Asm::Label pass_ = {0};
  Asm::Label drop_ = {0};
};

}  // namespace

std::vector<bpf_insn> BuildGroupFilter(const KernelLayout& layout, const GroupFilterMaps& maps,
                                       uint32_t own_tgid) {
  return Program(layout, maps).Build(own_tgid);
}

}  // namespace exitwatch
