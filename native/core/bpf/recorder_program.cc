#include "core/bpf/recorder_program.h"

#include <csignal>

#include "core/bpf/kernel_program.h"

namespace exitwatch {

namespace {

using Asm = BpfAssembler;

// The arguments of sched_process_exit: the task, which is the current one, and whether it is the
// last one of its group (Linux 6.16, <trace/events/sched.h>).
constexpr int16_t kGroupDead = 8;

// The first argument of signal_generate.
constexpr int16_t kSignalArgument = 0;

// Of the kernel's <linux/sched.h> and <linux/sched/signal.h>.
constexpr int32_t kTaskKernelThread = 0x00200000;  // PF_KTHREAD
constexpr int32_t kGroupExit = 0x00000004;         // SIGNAL_GROUP_EXIT

// The stack, below the place to read into: the record, its key, whether somebody watches the
// process, two pointers.
constexpr int16_t kRecord = -8 - static_cast<int16_t>(sizeof(RecordedExit));
constexpr int16_t kKeyAt = kRecord - static_cast<int16_t>(sizeof(RecorderKey));
constexpr int16_t kIsWatchedAt = kKeyAt - 8;
constexpr int16_t kSlotsAt = kIsWatchedAt - 16;

constexpr int16_t Field(size_t offset) {
  return static_cast<int16_t>(kRecord + static_cast<int16_t>(offset));
}

// Registers that calls leave alone, with one meaning each through the whole program.
constexpr Asm::Register kOther = Asm::kR6;  // whatever is being followed
constexpr Asm::Register kTask = Asm::kR7;
constexpr Asm::Register kSignal = Asm::kR8;  // its signal_struct
constexpr Asm::Register kFirst = Asm::kR9;   // its group's first thread

class Program : KernelProgram {
 public:
  Program(const KernelLayout& layout, const RecorderMaps& maps, RecorderTurn turn)
      : layout_(layout), maps_(maps), turn_(turn) {}

  std::vector<bpf_insn> Build(bool has_tai) {
    done_ = code_.NewLabel();
    LookAtTask();
    Mark();
    Clear(kRecord, sizeof(RecordedExit));
    RequireLease(maps_.state, Field(offsetof(RecordedExit, boot_ns)),
                 offsetof(RecorderState, exits), done_);
    Identify();
    LookUp();
    LookAtStatus();
    LookAtProcess();
    Stamp(has_tai);
    Keep();
    if (maps_.ring >= 0) Write();
    if (turn_ == RecorderTurn::kNotice) CountNotice();
    code_.Bind(done_);
    code_.Set(Asm::kR0, 0);
    code_.Exit();
    return code_.Finish();
  }

 private:
  // Goes on with the last task of a group of user space, and with kSignal and kFirst set. Before
  // Linux 6.16 several tasks may find that none of their group is left: each comes here.
  void LookAtTask() {
    const bool is_told = layout_.exit_tells_last && turn_ != RecorderTurn::kNotice;
    if (turn_ == RecorderTurn::kNotice) {
      code_.Load(Asm::kDouble, Asm::kR1, Asm::kR1, kSignalArgument);
      code_.JumpIf32(BPF_JNE, Asm::kR1, SIGCHLD, done_);
    } else if (is_told) {
      code_.Load(Asm::kDouble, Asm::kR1, Asm::kR1, kGroupDead);
      code_.Compute(BPF_AND, Asm::kR1, 0xff);  // a bool
      code_.JumpIf(BPF_JEQ, Asm::kR1, 0, done_);
    }
    code_.Call(Asm::kGetCurrentTask);
    code_.Move(kTask, Asm::kR0);
    if (turn_ == RecorderTurn::kNotice) {
      // A living process sends SIGCHLD when it stops, or with kill(2).
      ReadWord(Asm::kR1, kTask, layout_.task.exit_state);
      code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, done_);
    }
    ReadWord(Asm::kR1, kTask, layout_.task.flags);
    code_.JumpIf32(BPF_JSET, Asm::kR1, kTaskKernelThread, done_);
    ReadPointer(kSignal, kTask, layout_.task.signal);
    if (!is_told) {
      ReadWord(Asm::kR1, kSignal, layout_.signal.live);
      code_.JumpIf32(BPF_JNE, Asm::kR1, 0, done_);
    }
    ReadPointer(kFirst, kTask, layout_.task.group_leader);
  }

  // Leaves a mark that a program has come by for this process, or goes to the end if there is one.
  // If another process has overwritten it in between, both programs record the same.
  void Mark() {
    const Asm::Label is_next = code_.NewLabel();
    // Neither the address of its signal_struct nor its start is unique.
    Read(kSlotsAt, 8, kFirst, layout_.task.start_boottime);
    code_.Load(Asm::kDouble, kOther, Asm::kFrame, kSlotsAt);
    code_.Compute(BPF_ADD, kOther, kSignal);
    code_.SetDouble(Asm::kR1, maps_.secret);
    code_.Compute(BPF_MUL, kOther, Asm::kR1);
    code_.Compute(BPF_RSH, kOther, 24);
    ReadWord(Asm::kR1, kTask, layout_.task.tgid);
    code_.Compute(BPF_AND, Asm::kR1, kRecorderMarks - 1);
    code_.Store(Asm::kWord, Asm::kFrame, kSlotsAt, Asm::kR1);
    PointTo(Asm::kR2, kSlotsAt);
    code_.SetMap(Asm::kR1, maps_.marks);
    code_.Call(Asm::kMapLookup);
    code_.JumpIf(BPF_JEQ, Asm::kR0, 0, is_next);
    if (turn_ != RecorderTurn::kFirst) {
      code_.Load(Asm::kDouble, Asm::kR1, Asm::kR0, 0);
      code_.JumpIf(BPF_JEQ, Asm::kR1, kOther, done_);
    }
    code_.Store(Asm::kDouble, Asm::kR0, 0, kOther);
    code_.Bind(is_next);
  }

  void Identify() {
    Read(Field(offsetof(GroupRecord, pid)), 4, kTask, layout_.task.tgid);
    Read(Field(offsetof(GroupRecord, start_ns)), 8, kFirst, layout_.task.start_boottime);
    if (layout_.pid.inode) {
      ReadPointer(kOther, kFirst, layout_.task.thread_pid);
      Read(Field(offsetof(GroupRecord, inode)), 8, kOther, *layout_.pid.inode);
    }
    MakeKey(kKeyAt, layout_.pid.inode.has_value(), Field(offsetof(GroupRecord, inode)),
            Field(offsetof(GroupRecord, pid)), Field(offsetof(GroupRecord, start_ns)));
  }

  // Without a ring, strangers go no further than here.
  void LookUp() {
    const Asm::Label known = code_.NewLabel();
    code_.StoreValue(Asm::kDouble, Asm::kFrame, kIsWatchedAt, 0);
    PointTo(Asm::kR2, kKeyAt);
    code_.SetMap(Asm::kR1, maps_.watched);
    code_.Call(Asm::kMapLookup);
    code_.JumpIf(BPF_JEQ, Asm::kR0, 0, maps_.ring >= 0 ? known : done_);
    code_.StoreValue(Asm::kDouble, Asm::kFrame, kIsWatchedAt, 1);
    code_.Bind(known);
  }

  void LookAtStatus() {
    const Asm::Label ending = code_.NewLabel();
    const Asm::Label known = code_.NewLabel();
    const Asm::Label done = code_.NewLabel();
    code_.StoreValue(Asm::kWord, Asm::kFrame, Field(offsetof(GroupRecord, flags)),
                     static_cast<int32_t>(GroupRecord::kDead | GroupRecord::kFirstThread));
    ReadWord(Asm::kR1, kSignal, layout_.signal.flags);
    code_.JumpIf32(BPF_JSET, Asm::kR1, kGroupExit, ending);
    if (!layout_.signal.always_has_code) {
      // It is the first thread's own. If that one is still on its way, it comes here as well.
      const Asm::Label is_first = code_.NewLabel();
      code_.JumpIf(BPF_JEQ, kFirst, kTask, is_first);
      ReadWord(Asm::kR1, kFirst, layout_.task.exit_state);
      code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, done);
      code_.Bind(is_first);
      Read(Field(offsetof(GroupRecord, status)), 4, kFirst, layout_.task.exit_code);
      code_.Jump(known);
    } else {
      code_.Jump(done);
    }
    code_.Bind(ending);
    Read(Field(offsetof(GroupRecord, status)), 4, kSignal, layout_.signal.group_exit_code);
    code_.Bind(known);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, Field(offsetof(GroupRecord, flags)));
    code_.Compute(BPF_OR, Asm::kR1, static_cast<int32_t>(GroupRecord::kStatusKnown));
    code_.Store(Asm::kWord, Asm::kFrame, Field(offsetof(GroupRecord, flags)), Asm::kR1);
    code_.Bind(done);
  }

  void LookAtProcess() {
    Read(Field(offsetof(GroupRecord, name)), kNameBytes, kFirst, layout_.task.comm);
    ReadPointer(kOther, kFirst, layout_.task.real_parent);
    Read(Field(offsetof(GroupRecord, parent_pid)), 4, kOther, layout_.task.tgid);
    // It may be another thread of the parent.
    ReadPointer(kOther, kOther, layout_.task.group_leader);
    Read(Field(offsetof(RecordedExit, parent_name)), kNameBytes, kOther, layout_.task.comm);
    ReadPointer(kOther, kTask, layout_.task.cred);
    Read(Field(offsetof(GroupRecord, uid)), 4, kOther, layout_.cred.euid);
    if (layout_.executable && !layout_.executable->function) {
      const Asm::Label has_none = code_.NewLabel();
      ReadExecutable(*layout_.executable, kTask, kOther, Field(offsetof(GroupRecord, executable)),
                     kExecutableBytes, has_none);
      code_.Bind(has_none);
    }
    if (!layout_.cgroup) return;
    ReadCgroup(*layout_.cgroup, kTask, kOther, Field(offsetof(GroupRecord, cgroup)));
    const int ring = maps_.ring >= 0 ? maps_.ring : maps_.signals;
    const int known = maps_.ring >= 0 ? maps_.ring_cgroups : maps_.signal_cgroups;
    TellCgroup(*layout_.cgroup, kTask, kOther, Field(offsetof(GroupRecord, cgroup)), known, ring,
               kSlotsAt);
  }

  void Stamp(bool has_tai) {
    if (has_tai) {
      code_.Call(Asm::kKtimeGetTaiNs);
      code_.Store(Asm::kDouble, Asm::kFrame, Field(offsetof(RecordedExit, tai_ns)), Asm::kR0);
    }
    code_.Call(Asm::kKtimeGetNs);
    code_.Store(Asm::kDouble, Asm::kFrame, Field(offsetof(GroupRecord, time_ns)), Asm::kR0);
  }

  // A status that is known takes the place of one that was not.
  void Keep() {
    const Asm::Label unwatched = code_.NewLabel();
    const Asm::Label kept = code_.NewLabel();
    const Asm::Label chosen = code_.NewLabel();
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, kIsWatchedAt);
    code_.JumpIf(BPF_JEQ, Asm::kR1, 0, unwatched);
    code_.Set(Asm::kR4, BPF_ANY);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, Field(offsetof(GroupRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(GroupRecord::kStatusKnown), chosen);
    code_.Set(Asm::kR4, BPF_NOEXIST);
    code_.Bind(chosen);
    PointTo(Asm::kR2, kKeyAt);
    PointTo(Asm::kR3, kRecord);
    code_.SetMap(Asm::kR1, maps_.exits);
    code_.Call(Asm::kMapUpdate);
    constexpr int32_t kExists = -17;  // EEXIST
    code_.JumpIf(BPF_JEQ, Asm::kR0, 0, kept);
    code_.JumpIf32(BPF_JEQ, Asm::kR0, kExists, kept);
    CountLoss(maps_.state, offsetof(RecorderState, watched));
    code_.Bind(kept);
    code_.Bind(unwatched);
  }

  void Write() {
    const Asm::Label written = code_.NewLabel();
    code_.Set(Asm::kR4, kNoWakeup);
    Output(maps_.ring, kRecord, sizeof(RecordedExit), written);
    CountLoss(maps_.state, offsetof(RecorderState, exits));
    code_.Bind(written);
  }

  void CountNotice() {
    code_.SetMapValue(Asm::kR1, maps_.state, offsetof(RecorderState, noticed));
    code_.Set(Asm::kR2, 1);
    code_.AtomicAdd(Asm::kDouble, Asm::kR1, 0, Asm::kR2);
  }

  const KernelLayout& layout_;
  const RecorderMaps& maps_;
  const RecorderTurn turn_;
  Asm::Label done_ = {0};
};

}  // namespace

std::vector<bpf_insn> BuildRecorderProgram(const KernelLayout& layout, const RecorderMaps& maps,
                                           bool has_tai, RecorderTurn turn) {
  return Program(layout, maps, turn).Build(has_tai);
}

}  // namespace exitwatch
