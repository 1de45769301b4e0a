#include "core/bpf/signal_record_program.h"

#include <csignal>

namespace exitwatch {

namespace {

constexpr int32_t kLastSignal = 64;

template <typename... Signals>
constexpr uint64_t SetOf(Signals... signals) {
  return ((uint64_t{1} << (signals - 1)) | ...);
}

// Signals that end nothing by default.
constexpr uint64_t kHarmless =
    SetOf(SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU);

}  // namespace

void SignalRecordProgram::Begin() {
  drop_ = code_.NewLabel();
  code_.Move(kContext, Asm::kR1);
}

std::vector<bpf_insn> SignalRecordProgram::Finish() {
  code_.Call(Asm::kKtimeGetNs);
  code_.Store(Asm::kDouble, Asm::kFrame, RecordField(offsetof(SignalRecord, time_ns)), Asm::kR0);
  if (IsRecorder()) {
    Record();
  } else {
    ChooseWakeup();
    WriteRecord(maps_.ring, kRecord, sizeof(SignalRecord), maps_.state,
                offsetof(SignalTraceState, lost));
  }
  code_.Bind(drop_);
  code_.Set(Asm::kR0, 0);
  code_.Exit();
  return code_.Finish();
}

void SignalRecordProgram::ReadToRecord(size_t field, int32_t size, Asm::Register base,
                                       uint32_t offset) {
  Read(RecordField(field), size, base, offset);
}

void SignalRecordProgram::SetFlag(uint32_t flag) {
  code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
  code_.Compute(BPF_OR, Asm::kR1, static_cast<int32_t>(flag));
  code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)), Asm::kR1);
}

void SignalRecordProgram::SetFlagIf(Asm::Register from, int32_t bit, uint32_t flag) {
  const Asm::Label set = code_.NewLabel();
  const Asm::Label done = code_.NewLabel();
  code_.JumpIf32(BPF_JSET, from, bit, set);
  code_.Jump(done);
  code_.Bind(set);
  SetFlag(flag);
  code_.Bind(done);
}

void SignalRecordProgram::LoadSignal(Asm::Register to) {
  code_.Load(Asm::kWord, to, Asm::kFrame, RecordField(offsetof(SignalRecord, signal)));
}

void SignalRecordProgram::JumpIfInSet(Asm::Register set, bool is_set, Asm::Label to) {
  LoadSignal(Asm::kR1);
  code_.Compute(BPF_SUB, Asm::kR1, 1);
  code_.Move(Asm::kR2, set);
  code_.Compute(BPF_RSH, Asm::kR2, Asm::kR1);
  code_.Compute(BPF_AND, Asm::kR2, 1);
  code_.JumpIf(is_set ? BPF_JNE : BPF_JEQ, Asm::kR2, 0, to);
}

void SignalRecordProgram::LookAtSignal(int16_t argument) {
  code_.Load(Asm::kDouble, Asm::kR1, kContext, argument);
  code_.JumpIf32(BPF_JEQ, Asm::kR1, SIGCHLD, drop_);
  code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, drop_);
  code_.JumpIf32(BPF_JGT, Asm::kR1, kLastSignal, drop_);
  ClearRecord();
  code_.Load(Asm::kDouble, Asm::kR1, kContext, argument);
  code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, signal)), Asm::kR1);
  code_.SetDouble(Asm::kR3, kHarmless);
  JumpIfInSet(Asm::kR3, true, drop_);
}

void SignalRecordProgram::ClearRecord() {
  Clear(kRecord, sizeof(SignalRecord));
  code_.SetMapValue(Asm::kR1, maps_.state, offsetof(SignalTraceState, zero));
  code_.Load(Asm::kWord, Asm::kR1, Asm::kR1, 0);
  code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)), Asm::kR1);
}

void SignalRecordProgram::LookAtWatched() {
  if (IsRecorder()) return LookUp(false);
  if (maps_.watched < 0) return;
  RequireWatched(maps_.watched, RecordField(offsetof(SignalRecord, pid)), drop_);
}

void SignalRecordProgram::LookAtTarget() {
  ReadToRecord(offsetof(SignalRecord, thread), 4, kTask, layout_.task.pid);
  ReadToRecord(offsetof(SignalRecord, memory), 8, kTask, layout_.task.mm);
  if (IsRecorder()) {
    constexpr int16_t kMemory = RecordField(offsetof(SignalRecord, memory));
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, kMemory);
    code_.SetDouble(Asm::kR2, maps_.recorder->secret);
    code_.Compute(BPF_MUL, Asm::kR1, Asm::kR2);
    code_.Compute(BPF_RSH, Asm::kR1, 32);
    code_.Store(Asm::kDouble, Asm::kFrame, kMemory, Asm::kR1);
  }
  const Asm::Label unptraced = code_.NewLabel();
  ReadWord(Asm::kR1, kTask, layout_.task.ptrace);
  code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, unptraced);
  SetFlag(SignalRecord::kPtraced);
  code_.Bind(unptraced);
  ReadPointer(kOther, kTask, layout_.task.group_leader);
  ReadToRecord(offsetof(SignalRecord, start_ns), 8, kOther, layout_.task.start_boottime);
  ReadToRecord(offsetof(SignalRecord, name), kNameBytes, kOther, layout_.task.comm);
  if (layout_.pid.inode) {
    ReadPointer(kOther, kOther, layout_.task.thread_pid);
    ReadToRecord(offsetof(SignalRecord, inode), 8, kOther, *layout_.pid.inode);
  }
}

void SignalRecordProgram::ReadInfo() {
  ReadToRecord(offsetof(SignalRecord, code), 4, kOther, layout_.siginfo.code);
  ReadToRecord(offsetof(SignalRecord, info), sizeof(SignalRecord::info), kOther,
               layout_.siginfo.fields);
}

void SignalRecordProgram::ReadSenderIds() {
  ReadWord(Asm::kR3, kCurrent, layout_.task.flags);
  SetFlagIf(Asm::kR3, layout_.task_exiting, SignalRecord::kSenderExiting);
  SetFlagIf(Asm::kR3, layout_.task_kernel_thread, SignalRecord::kSenderKernel);
  ReadToRecord(offsetof(SignalRecord, sender_pid), 4, kCurrent, layout_.task.tgid);
  ReadToRecord(offsetof(SignalRecord, sender_thread), 4, kCurrent, layout_.task.pid);
  ReadPointer(kOther, kCurrent, layout_.task.group_leader);
  ReadToRecord(offsetof(SignalRecord, sender_start), 8, kOther, layout_.task.start_boottime);
}

void SignalRecordProgram::LookAtSender() {
  ReadSenderIds();
  ReadToRecord(offsetof(SignalRecord, sender_name), kNameBytes, kOther, layout_.task.comm);
  if (layout_.executable) {
    const Asm::Label has_none = code_.NewLabel();
    ReadExecutable(*layout_.executable, kCurrent, kOther,
                   RecordField(offsetof(SignalRecord, sender_program)), kSenderProgramBytes,
                   has_none);
    code_.Bind(has_none);
  }
  ReadPointer(kOther, kCurrent, layout_.task.cred);
  ReadToRecord(offsetof(SignalRecord, sender_uid), 4, kOther, layout_.cred.euid);
  if (layout_.cgroup) {
    ReadCgroup(*layout_.cgroup, kCurrent, kOther, RecordField(offsetof(SignalRecord, cgroup)));
  }
}

void SignalRecordProgram::LookAtPidThere() {
  constexpr int16_t kOtherAt = kSlotsAt;
  constexpr int16_t kSpaceAt = kSlotsAt + 8;
  constexpr int16_t kLevelAt = kContextAt;
  const PidPlaces& places = layout_.pid_there;
  const auto go_to_number = [&] {
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, kLevelAt);
    code_.Compute(BPF_MUL, Asm::kR1, static_cast<int32_t>(places.number_bytes));
    code_.Compute(BPF_ADD, Asm::kR1, static_cast<int32_t>(places.numbers));
    code_.Compute(BPF_ADD, kOther, Asm::kR1);
  };
  const Asm::Label unseen = code_.NewLabel();
  code_.JumpIf(BPF_JEQ, kOther, 0, unseen);
  code_.Store(Asm::kDouble, Asm::kFrame, kOtherAt, kOther);
  ReadPointer(kOther, kTask, layout_.task.thread_pid);
  code_.JumpIf(BPF_JEQ, kOther, 0, unseen);
  ReadWord(Asm::kR1, kOther, places.level);
  code_.Store(Asm::kWord, Asm::kFrame, kLevelAt, Asm::kR1);
  go_to_number();
  ReadPointer(Asm::kR1, kOther, places.name_space);
  code_.Store(Asm::kDouble, Asm::kFrame, kSpaceAt, Asm::kR1);

  code_.Load(Asm::kDouble, kOther, Asm::kFrame, kOtherAt);
  ReadWord(Asm::kR1, kOther, places.level);
  code_.Load(Asm::kWord, Asm::kR2, Asm::kFrame, kLevelAt);
  code_.JumpIf32(BPF_JLT, Asm::kR1, Asm::kR2, unseen);
  go_to_number();
  ReadPointer(Asm::kR1, kOther, places.name_space);
  code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, kSpaceAt);
  code_.JumpIf(BPF_JNE, Asm::kR1, Asm::kR2, unseen);
  ReadToRecord(offsetof(SignalRecord, sender_pid_there), 4, kOther, places.number);
  code_.Bind(unseen);
}

void SignalRecordProgram::TellCgroupOf(Asm::Register task, Asm::Register scratch, size_t field) {
  const bool is_recorder = IsRecorder();
  TellCgroup(*layout_.cgroup, task, scratch, RecordField(field),
             is_recorder ? maps_.recorder->signal_cgroups : maps_.cgroups,
             is_recorder ? maps_.recorder->signals : maps_.ring, kSlotsAt);
}

void SignalRecordProgram::TellSenderCgroup() {
  if (layout_.cgroup) TellCgroupOf(kCurrent, kOther, offsetof(SignalRecord, cgroup));
}

void SignalRecordProgram::TellSenderCommandLine() {
  if (!maps_.tells_command_lines || !layout_.command_line || IsRecorder()) return;
  static_assert(kSlotsAt + 24 <= kScratch, "three slots: the context is no longer needed");
  TellCommandLine(*layout_.command_line, kCurrent, kOther,
                  RecordField(offsetof(SignalRecord, sender_pid)),
                  RecordField(offsetof(SignalRecord, sender_start)), maps_.ring, maps_.ring_bytes,
                  kSlotsAt, [this] { SetFlag(SignalRecord::kCommandLine); });
}

void SignalRecordProgram::LookAtAncestors() {
  const Asm::Label none = code_.NewLabel();
  ReadPointer(kOther, kCurrent, layout_.task.group_leader);
  for (size_t i = 0; i < kAncestors; i++) {
    const size_t ancestor = offsetof(SignalRecord, ancestors) + i * sizeof(Ancestor);
    ReadPointer(kOther, kOther, layout_.task.real_parent);
    ReadPointer(kOther, kOther, layout_.task.group_leader);
    ReadToRecord(ancestor + offsetof(Ancestor, pid), 4, kOther, layout_.task.tgid);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(ancestor));
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, none);
    ReadToRecord(ancestor + offsetof(Ancestor, name), kNameBytes, kOther, layout_.task.comm);
    if (!layout_.cgroup) continue;
    const size_t cgroup = offsetof(SignalRecord, ancestor_cgroups) + i * sizeof(uint64_t);
    ReadCgroup(*layout_.cgroup, kOther, kTask, RecordField(cgroup));
    TellCgroupOf(kOther, kTask, cgroup);
  }
  code_.Bind(none);
}

void SignalRecordProgram::ChooseWakeup() {
  const Asm::Label chosen = code_.NewLabel();
  const Asm::Label unless_full = code_.NewLabel();
  // By itself, the kernel does not wake a reader that has not read every earlier record, such as
  // the path of a cgroup.
  const Asm::Label wake = code_.NewLabel();
  code_.SetMapValue(Asm::kR1, maps_.state, 0);
  code_.Load(Asm::kWord, Asm::kR2, Asm::kR1, offsetof(SignalTraceState, wakeup));
  code_.JumpIf32(BPF_JEQ, Asm::kR2, static_cast<int32_t>(SignalWakeup::kAll), wake);
  code_.JumpIf32(BPF_JNE, Asm::kR2, static_cast<int32_t>(SignalWakeup::kOthers), unless_full);
  code_.Load(Asm::kWord, Asm::kR2, Asm::kFrame, RecordField(offsetof(SignalRecord, pid)));
  code_.Load(Asm::kWord, Asm::kR3, Asm::kFrame, RecordField(offsetof(SignalRecord, sender_pid)));
  code_.JumpIf32(BPF_JEQ, Asm::kR2, Asm::kR3, unless_full);
  code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, RecordField(offsetof(SignalRecord, time_ns)));
  code_.Load(Asm::kDouble, Asm::kR3, Asm::kR1, offsetof(SignalTraceState, woken_ns));
  code_.Compute(BPF_ADD, Asm::kR3, static_cast<int32_t>(kSignalWakeupNs));
  code_.JumpIf(BPF_JLT, Asm::kR2, Asm::kR3, unless_full);
  code_.Store(Asm::kDouble, Asm::kR1, offsetof(SignalTraceState, woken_ns), Asm::kR2);
  code_.Jump(wake);
  code_.Bind(unless_full);
  // Before there is no room for arguments any more.
  JumpIfFuller(maps_.ring, maps_.ring_bytes / (maps_.tells_command_lines ? 8 : 2), wake);
  code_.Set(Asm::kR4, kNoWakeup);
  code_.Jump(chosen);
  code_.Bind(wake);
  code_.Set(Asm::kR4, kForceWakeup);
  code_.Bind(chosen);
}

}  // namespace exitwatch
