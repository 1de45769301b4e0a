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

// Common parts of the signal trace's programs: a SignalRecord on the stack, which they fill with
// the signal, its process and its sender, and write to the ring buffer.
class SignalRecordProgram : protected KernelProgram {
 protected:
  // Registers that calls preserve. Each has one meaning throughout the program.
  static constexpr Asm::Register kContext = Asm::kR6;
  static constexpr Asm::Register kTask = Asm::kR7;     // a task of the process that gets the signal
  static constexpr Asm::Register kCurrent = Asm::kR8;  // the sender's task
  static constexpr Asm::Register kOther = Asm::kR9;    // the object being followed

  // The stack below kScratch: the address of the tracepoint's arguments, two slots, the record.
  static constexpr int16_t kContextAt = -16;
  static constexpr int16_t kSlotsAt = -32;
  static constexpr int16_t kRecord = kSlotsAt - static_cast<int16_t>(sizeof(SignalRecord));
  // Of a recorder: the key, and the process's entry in the table of watched ones, or 0.
  static constexpr int16_t kKeyAt = kRecord - static_cast<int16_t>(sizeof(RecordedSignalKey));
  static constexpr int16_t kWatchAt = kKeyAt - 8;

  // From the kernel's <linux/sched/signal.h>: the siginfo of signals from the kernel.
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

  // Preserves `from`.
  void SetFlagIf(Asm::Register from, int32_t bit, uint32_t flag);
  void LoadSignal(Asm::Register to);

  // Jumps to `to` if the signal's bit in `set` equals `is_set`. Clobbers r1 and r2.
  void JumpIfInSet(Asm::Register set, bool is_set, Asm::Label to);

  // Most signals on a host are SIGCHLD, which report exits to parents. They stop here.
  void LookAtSignal(int16_t argument);

  // Hides the initial flags from the verifier, which would otherwise follow each combination of
  // them separately.
  void ClearRecord();
  void LookAtWatched();
  void LookAtTarget();
  bool IsRecorder() const { return maps_.recorder != nullptr; }

  // Of a recorder: whether the process, in kTask, is watched. Goes to drop_ if neither that nor
  // anything else makes its signals worth a record.
  void LookUp(bool keeps_strangers);
  void DoNotLookUp();

  // From the siginfo in kOther.
  void ReadInfo();
  void ReadSenderIds();
  void LookAtSender();

  // Reads the number that the struct pid in kOther has in the process's pid namespace. A struct pid
  // has a number for its own namespace and for each one above.
  void LookAtPidThere();
  void TellSenderCgroup();
  void TellSenderCommandLine();

  // From the sender's parent up to init. Clobbers kTask.
  void LookAtAncestors();

  // Sets r4. A record need not be read before somebody asks for it, unless somebody listens, or the
  // buffer fills up.
  void ChooseWakeup();

  const SignalLayout& layout_;
  const SignalTraceMaps& maps_;
  Asm::Label drop_ = {0};

 private:
  // Of the task, whose cgroup's id is in this field of the record. Clobbers `scratch`.
  void TellCgroupOf(Asm::Register task, Asm::Register scratch, size_t field);
  void Record();
  void Keep();
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_SIGNAL_RECORD_PROGRAM_H_
