#ifndef EXITWATCH_CORE_BPF_SIGNAL_RECORD_PROGRAM_H_
#define EXITWATCH_CORE_BPF_SIGNAL_RECORD_PROGRAM_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/signal_record.h"
#include "core/bpf/kernel_program.h"
#include "core/bpf/signal_program.h"

namespace exitwatch {

// What the programs of the signal trace have in common: a SignalRecord on the stack, which they
// fill with the signal, its process and its sender, and write to the ring buffer.
class SignalRecordProgram : protected KernelProgram {
 protected:
  // Registers that calls leave alone, with one meaning each through the whole program.
  static constexpr Asm::Register kContext = Asm::kR6;
  static constexpr Asm::Register kTask = Asm::kR7;     // of the process that gets the signal
  static constexpr Asm::Register kCurrent = Asm::kR8;  // of the sender
  static constexpr Asm::Register kOther = Asm::kR9;    // whatever is being followed

  // The stack, below the place to read into: where the arguments of the tracepoint are, two
  // pointers, the record.
  static constexpr int16_t kContextAt = -16;
  static constexpr int16_t kSlotsAt = -32;
  static constexpr int16_t kRecord = kSlotsAt - static_cast<int16_t>(sizeof(SignalRecord));

  // Of the kernel's <linux/sched/signal.h>: the siginfo of what the kernel sends.
  static constexpr int32_t kPrivileged = 1;  // SEND_SIG_PRIV

  static constexpr int16_t RecordField(size_t offset) {
    return static_cast<int16_t>(kRecord + static_cast<int16_t>(offset));
  }

  SignalRecordProgram(const SignalLayout& layout, const SignalTraceMaps& maps)
      : layout_(layout), maps_(maps) {}

  void Begin();
  std::vector<bpf_insn> Finish();
  void ReadToRecord(size_t field, int32_t size, Asm::Register base, uint32_t offset);
  void SetFlag(uint32_t flag);

  // `from` is left alone.
  void SetFlagIf(Asm::Register from, int32_t bit, uint32_t flag);
  void LoadSignal(Asm::Register to);

  // Goes to `to` if the signal's bit in `set` is `is_set`. Takes r1 and r2.
  void JumpIfInSet(Asm::Register set, bool is_set, Asm::Label to);

  // Most signals of a host tell parents of ends (SIGCHLD): these go no further than here.
  void LookAtSignal(int16_t argument);

  // Where the verifier knows which flags are set, it follows each combination of them by itself.
  void ClearRecord();
  void LookAtWatched();
  void LookAtTarget();

  // Of the siginfo in kOther.
  void ReadInfo();
  void ReadSenderIds();
  void LookAtSender();

  // What the one with this struct pid, in kOther, is called in the process's pid namespace: it has
  // a number for its own namespace, and for each of those above.
  void LookAtPidThere();
  void TellSenderCgroup();

  // From the sender's first thread up to init.
  void LookAtAncestors();

  // To r4: nobody has to read what comes before it is asked for, unless somebody listens, or the
  // buffer is about to be full.
  void ChooseWakeup();

  const SignalLayout& layout_;
  const SignalTraceMaps& maps_;
  Asm::Label drop_ = {0};
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_SIGNAL_RECORD_PROGRAM_H_
