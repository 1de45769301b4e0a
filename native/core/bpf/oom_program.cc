#include "core/bpf/signal_program.h"

#include "core/bpf/signal_record_program.h"

namespace exitwatch {

namespace {

using Asm = BpfAssembler;

// The argument of mark_victim.
constexpr int16_t kVictim = 0;

class OomProgram : SignalRecordProgram {
 public:
  OomProgram(const SignalLayout& layout, const SignalTraceMaps& maps)
      : SignalRecordProgram(layout, maps) {}

  std::vector<bpf_insn> Build() {
    Begin();
    ClearRecord();
    SetFlag(SignalRecord::kOom);
    code_.Load(Asm::kDouble, kTask, kContext, kVictim);
    code_.Call(Asm::kGetCurrentTask);
    code_.Move(kCurrent, Asm::kR0);
    ReadSenderIds();
    if (layout_.victim_is_task) {
      ReadToRecord(offsetof(SignalRecord, pid), 4, kTask, layout_.task.tgid);
      if (IsRecorder()) LookUp(true);
      LookAtTarget();
    } else {
      code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, pid)), kTask);
      if (IsRecorder()) DoNotLookUp();
    }
    return Finish();
  }
};

}  // namespace

std::vector<bpf_insn> BuildOomProgram(const SignalLayout& layout, const SignalTraceMaps& maps) {
  return OomProgram(layout, maps).Build();
}

}  // namespace exitwatch
