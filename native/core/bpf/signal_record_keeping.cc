// What a recorder's signal programs do with a record; see recorder_program.h.
#include "core/bpf/signal_record_program.h"

namespace exitwatch {

namespace {

constexpr uint32_t kEnding = SignalRecord::kOom | SignalRecord::kDeadly | SignalRecord::kTaken;

constexpr uint32_t kHeldBack =
    SignalRecord::kBlocked | SignalRecord::kAwaited | SignalRecord::kPtraced;

}  // namespace

void SignalRecordProgram::LookUp(bool keeps_strangers) {
  const RecorderMaps& maps = *maps_.recorder;
  const Asm::Label known = code_.NewLabel();
  RequireLease(maps.state, RecordField(offsetof(SignalRecord, time_ns)),
               offsetof(RecorderState, signals), drop_);
  ReadPointer(kOther, kTask, layout_.task.group_leader);
  ReadToRecord(offsetof(SignalRecord, start_ns), 8, kOther, layout_.task.start_boottime);
  if (layout_.pid.inode) {
    ReadPointer(kOther, kOther, layout_.task.thread_pid);
    ReadToRecord(offsetof(SignalRecord, inode), 8, kOther, *layout_.pid.inode);
  }
  MakeKey(kKeyAt, layout_.pid.inode.has_value(), RecordField(offsetof(SignalRecord, inode)),
          RecordField(offsetof(SignalRecord, pid)), RecordField(offsetof(SignalRecord, start_ns)));
  code_.StoreValue(Asm::kDouble, Asm::kFrame, kWatchAt, 0);
  code_.SetMap(Asm::kR1, maps.watched);
  PointTo(Asm::kR2, kKeyAt);
  code_.Call(Asm::kMapLookup);
  code_.JumpIf(BPF_JEQ, Asm::kR0, 0, maps.ring >= 0 || keeps_strangers ? known : drop_);
  code_.Store(Asm::kDouble, Asm::kFrame, kWatchAt, Asm::kR0);
  code_.Bind(known);
}

void SignalRecordProgram::DoNotLookUp() {
  RequireLease(maps_.recorder->state, RecordField(offsetof(SignalRecord, time_ns)),
               offsetof(RecorderState, signals), drop_);
  code_.StoreValue(Asm::kDouble, Asm::kFrame, kWatchAt, 0);
}

// What may have ended a process goes where floods of other signals cannot take its place.
void SignalRecordProgram::Record() {
  const RecorderMaps& maps = *maps_.recorder;
  const auto slot_at = static_cast<int16_t>(kKeyAt + offsetof(RecordedSignalKey, slot));
  // The verifier would remember the flags of each path so far, and follow each to the end. What is
  // read back is unknown to it.
  constexpr int16_t kFlags = RecordField(offsetof(SignalRecord, flags));
  code_.Move(Asm::kR3, Asm::kFrame);
  Read(kFlags, sizeof(SignalRecord::flags), Asm::kR3, static_cast<uint32_t>(int32_t{kFlags}));
  const Asm::Label unhandled = code_.NewLabel();
  const Asm::Label fatal = code_.NewLabel();
  const Asm::Label other = code_.NewLabel();
  const struct {
    uint32_t flag;
    int32_t slot;
  } kinds[] = {{SignalRecord::kOom, kVictimSlot},
               {SignalRecord::kDeadly, kDeadlySlot},
               {SignalRecord::kTaken, kTakenSlot}};
  for (const auto& [flag, slot] : kinds) {
    const Asm::Label next = code_.NewLabel();
    const Asm::Label found = code_.NewLabel();
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(flag), found);
    code_.Jump(next);
    code_.Bind(found);
    code_.StoreValue(Asm::kDouble, Asm::kFrame, slot_at, slot);
    code_.Jump(fatal);
    code_.Bind(next);
  }
  code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(SignalRecord::kUnhandled), unhandled);
  code_.Jump(other);
  code_.Bind(unhandled);
  LoadSignal(Asm::kR1);
  code_.Compute(BPF_ADD, Asm::kR1, static_cast<int32_t>(kDefaultSlot));
  code_.Store(Asm::kDouble, Asm::kFrame, slot_at, Asm::kR1);

  code_.Bind(fatal);
  Keep();
  if (maps.ring >= 0) {
    // What a process blocks, or a debugger may hold back, anybody may repeat for ever.
    const Asm::Label first = code_.NewLabel();
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(kEnding), first);
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(kHeldBack), other);
    code_.Bind(first);
    code_.Set(Asm::kR4, kNoWakeup);
    Output(maps.ring, kRecord, sizeof(SignalRecord), drop_);
    CountLoss(maps.state, offsetof(RecorderState, signals));
    code_.Jump(drop_);
  } else {
    // Others may share the memory of a victim of the OOM killer.
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(SignalRecord::kOom), other);
    code_.Jump(drop_);
  }
  code_.Bind(other);
  code_.Set(Asm::kR4, kNoWakeup);
  Output(maps.signals, kRecord, sizeof(SignalRecord), drop_);
  CountLoss(maps.state, offsetof(RecorderState, signals));
}

// Of a watched process.
void SignalRecordProgram::Keep() {
  constexpr int32_t kExists = -17;  // EEXIST
  const RecorderMaps& maps = *maps_.recorder;
  const Asm::Label replace = code_.NewLabel();
  const Asm::Label lost = code_.NewLabel();
  const Asm::Label done = code_.NewLabel();
  const auto update = [&](int32_t how) {
    code_.SetMap(Asm::kR1, maps.kept);
    PointTo(Asm::kR2, kKeyAt);
    PointTo(Asm::kR3, kRecord);
    code_.Set(Asm::kR4, how);
    code_.Call(Asm::kMapUpdate);
  };
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, kWatchAt);
  code_.JumpIf(BPF_JEQ, Asm::kR1, 0, done);
  code_.StoreValue(Asm::kDouble, Asm::kR1, 0, 1);
  update(BPF_NOEXIST);
  code_.JumpIf(BPF_JEQ, Asm::kR0, 0, done);
  code_.JumpIf32(BPF_JEQ, Asm::kR0, kExists, replace);
  code_.Jump(lost);
  code_.Bind(replace);
  SetFlag(SignalRecord::kReplaced);
  update(BPF_ANY);
  code_.JumpIf(BPF_JEQ, Asm::kR0, 0, done);
  code_.Bind(lost);
  CountLoss(maps.state, offsetof(RecorderState, watched));
  code_.Bind(done);
}

}  // namespace exitwatch
