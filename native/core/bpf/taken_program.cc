#include "core/bpf/signal_program.h"

#include <csignal>

#include "core/bpf/signal_record_program.h"

namespace exitwatch {

namespace {

using Asm = BpfAssembler;

// The arguments of signal_deliver.
constexpr int16_t kTakenSignal = 0;
constexpr int16_t kTakenInfo = 8;
constexpr int16_t kTakenAction = 16;

// From the kernel's <linux/sched/signal.h>.
constexpr int32_t kUnkillable = 0x00000040;  // SIGNAL_UNKILLABLE

class TakenProgram : SignalRecordProgram {
 public:
  TakenProgram(const SignalLayout& layout, const SignalTraceMaps& maps)
      : SignalRecordProgram(layout, maps) {}

  std::vector<bpf_insn> Build() {
    Begin();
    LookAtSignal(kTakenSignal);
    LookAtAction();
    code_.Call(Asm::kGetCurrentTask);
    code_.Move(kTask, Asm::kR0);
    ReadToRecord(offsetof(SignalRecord, pid), 4, kTask, layout_.task.tgid);
    LookAtWatched();
    LookAtUnkillable();
    SetFlag(SignalRecord::kTaken);
    LookAtTarget();
    code_.Load(Asm::kDouble, kOther, kContext, kTakenInfo);
    ReadInfo();
    ReadPointer(kCurrent, kTask, layout_.task.parent);
    LookAtSender();
    ReadPointer(kOther, kCurrent, layout_.task.thread_pid);
    LookAtPidThere();
    LookAtAncestors();
    TellSenderCgroup();
    return Finish();
  }

 private:
  // A signal taken without a handler ends the process. If the process is already dying, each of its
  // threads takes a SIGKILL without a siginfo, which nobody sent: leave it out.
  void LookAtAction() {
    code_.Load(Asm::kDouble, kOther, kContext, kTakenInfo);
    code_.JumpIf(BPF_JLE, kOther, kPrivileged, drop_);
    code_.Load(Asm::kDouble, kOther, kContext, kTakenAction);
    ReadPointer(Asm::kR3, kOther, layout_.sighand.handler_in_action);
    code_.JumpIf(BPF_JNE, Asm::kR3, 0, drop_);
  }

  // The first process of a pid namespace survives all but SIGKILL.
  void LookAtUnkillable() {
    const Asm::Label kills = code_.NewLabel();
    const Asm::Label unkillable = code_.NewLabel();
    LoadSignal(Asm::kR1);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, SIGKILL, kills);
    ReadPointer(kOther, kTask, layout_.task.signal);
    ReadWord(Asm::kR1, kOther, layout_.signal.flags);
    code_.JumpIf32(BPF_JSET, Asm::kR1, kUnkillable, unkillable);
    code_.Jump(kills);
    code_.Bind(unkillable);
    code_.Jump(drop_);
    code_.Bind(kills);
  }
};

}  // namespace

std::vector<bpf_insn> BuildTakenProgram(const SignalLayout& layout, const SignalTraceMaps& maps) {
  return TakenProgram(layout, maps).Build();
}

}  // namespace exitwatch
