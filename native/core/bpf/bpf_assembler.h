#ifndef EXITWATCH_CORE_BPF_BPF_ASSEMBLER_H_
#define EXITWATCH_CORE_BPF_BPF_ASSEMBLER_H_

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace exitwatch {

// Assembles eBPF programs (the kernel's Documentation/bpf/standardization/instruction-set.rst),
// with labels instead of distances. Defines the opcodes and helpers that old distributions' headers
// lack.
class BpfAssembler {
 public:
  enum Register : uint8_t { kR0, kR1, kR2, kR3, kR4, kR5, kR6, kR7, kR8, kR9, kFrame };
  enum Size : uint8_t { kByte = BPF_B, kHalf = BPF_H, kWord = BPF_W, kDouble = BPF_DW };

  // From enum bpf_func_id.
  enum Helper : int32_t {
    kMapLookup = 1,
    kMapUpdate = 2,
    kMapDelete = 3,
    kKtimeGetNs = 5,
    kSkbLoadBytes = 26,
    kGetCurrentTask = 35,
    kProbeReadUser = 112,       // Linux 5.5
    kProbeReadKernel = 113,     // Linux 5.5
    kProbeReadKernelStr = 115,  // Linux 5.5
    kKtimeGetBootNs = 125,      // Linux 5.8
    kRingbufOutput = 130,       // Linux 5.8
    kRingbufReserve = 131,      // Linux 5.8
    kRingbufSubmit = 132,       // Linux 5.8
    kRingbufDiscard = 133,      // Linux 5.8
    kRingbufQuery = 134,        // Linux 5.8
    kGetCurrentTaskBtf = 158,   // Linux 5.11
    kTaskPtRegs = 175,          // Linux 5.15
    kKtimeGetTaiNs = 208,       // Linux 6.1
  };

  struct Label {
    int id;
  };
  Label NewLabel();
  void Bind(Label label);

  void Move(Register to, Register from);
  void Set(Register to, int32_t value);
  void SetDouble(Register to, uint64_t value);
  // BPF_ADD, BPF_AND, BPF_RSH and the like, in 64 bits.
  void Compute(uint8_t operation, Register to, int32_t value);
  void Compute(uint8_t operation, Register to, Register from);

  void Load(Size size, Register to, Register base, int16_t offset);
  void Store(Size size, Register base, int16_t offset, Register from);
  void StoreValue(Size size, Register base, int16_t offset, int32_t value);

  // Adds to memory atomically.
  void AtomicAdd(Size size, Register base, int16_t offset, Register from);

  void Jump(Label to);
  // JumpIf32() compares the lower 32 bits (BPF_JEQ, BPF_JSET, …).
  void JumpIf32(uint8_t condition, Register left, int32_t right, Label to);
  void JumpIf32(uint8_t condition, Register left, Register right, Label to);
  void JumpIf(uint8_t condition, Register left, int32_t right, Label to);
  void JumpIf(uint8_t condition, Register left, Register right, Label to);

  void SetMap(Register to, int map_fd);
  void SetMapValue(Register to, int map_fd, int32_t offset);  // of an array's first element
  void Call(Helper helper);
  void Exit();

  // The finished program. Every label that is a jump target must be bound.
  std::vector<bpf_insn> Finish();

 private:
  struct Pending {
    size_t at;
    int label;
  };

  void Emit(uint8_t code, uint8_t to, uint8_t from, int16_t offset, int32_t value);
  void EmitJump(uint8_t code, uint8_t left, uint8_t right, int32_t value, Label to);
  void EmitWide(Register to, uint8_t kind, int32_t low, int32_t high);

  std::vector<bpf_insn> program_;
  std::vector<size_t> places_;  // positions of labels, by id
  std::vector<Pending> jumps_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_BPF_ASSEMBLER_H_
