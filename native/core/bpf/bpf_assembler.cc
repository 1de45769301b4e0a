#include "core/bpf/bpf_assembler.h"

namespace exitwatch {

namespace {

constexpr uint8_t kJump32 = 0x06;       // BPF_JMP32, Linux 5.1
constexpr uint8_t kAtomic = 0xc0;       // BPF_ATOMIC, formerly BPF_XADD
constexpr uint8_t kPseudoMapFd = 1;     // BPF_PSEUDO_MAP_FD
constexpr uint8_t kPseudoMapValue = 2;  // BPF_PSEUDO_MAP_VALUE, Linux 5.2

}  // namespace

BpfAssembler::Label BpfAssembler::NewLabel() {
  places_.push_back(0);
  return {static_cast<int>(places_.size()) - 1};
}

void BpfAssembler::Bind(Label label) { places_[static_cast<size_t>(label.id)] = program_.size(); }

void BpfAssembler::Emit(uint8_t code, uint8_t to, uint8_t from, int16_t offset, int32_t value) {
  bpf_insn instruction = {};
  instruction.code = code;
  instruction.dst_reg = to & 0xf;
  instruction.src_reg = from & 0xf;
  instruction.off = offset;
  instruction.imm = value;
  program_.push_back(instruction);
}

void BpfAssembler::Move(Register to, Register from) {
  Emit(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

void BpfAssembler::Set(Register to, int32_t value) {
  Emit(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

void BpfAssembler::Compute(uint8_t operation, Register to, int32_t value) {
  Emit(static_cast<uint8_t>(BPF_ALU64 | BPF_K | operation), to, 0, 0, value);
}

void BpfAssembler::Compute(uint8_t operation, Register to, Register from) {
  Emit(static_cast<uint8_t>(BPF_ALU64 | BPF_X | operation), to, from, 0, 0);
}

void BpfAssembler::Load(Size size, Register to, Register base, int16_t offset) {
  Emit(static_cast<uint8_t>(BPF_LDX | BPF_MEM | size), to, base, offset, 0);
}

void BpfAssembler::Store(Size size, Register base, int16_t offset, Register from) {
  Emit(static_cast<uint8_t>(BPF_STX | BPF_MEM | size), base, from, offset, 0);
}

void BpfAssembler::StoreValue(Size size, Register base, int16_t offset, int32_t value) {
  Emit(static_cast<uint8_t>(BPF_ST | BPF_MEM | size), base, 0, offset, value);
}

void BpfAssembler::AtomicAdd(Size size, Register base, int16_t offset, Register from) {
  Emit(static_cast<uint8_t>(BPF_STX | kAtomic | size), base, from, offset, BPF_ADD);
}

void BpfAssembler::EmitJump(uint8_t code, uint8_t left, uint8_t right, int32_t value, Label to) {
  jumps_.push_back({program_.size(), to.id});
  Emit(code, left, right, 0, value);
}

void BpfAssembler::Jump(Label to) { EmitJump(BPF_JMP | BPF_JA, 0, 0, 0, to); }

void BpfAssembler::JumpIf32(uint8_t condition, Register left, int32_t right, Label to) {
  EmitJump(static_cast<uint8_t>(kJump32 | BPF_K | condition), left, 0, right, to);
}

void BpfAssembler::JumpIf32(uint8_t condition, Register left, Register right, Label to) {
  EmitJump(static_cast<uint8_t>(kJump32 | BPF_X | condition), left, right, 0, to);
}

void BpfAssembler::JumpIf(uint8_t condition, Register left, int32_t right, Label to) {
  EmitJump(static_cast<uint8_t>(BPF_JMP | BPF_K | condition), left, 0, right, to);
}

void BpfAssembler::JumpIf(uint8_t condition, Register left, Register right, Label to) {
  EmitJump(static_cast<uint8_t>(BPF_JMP | BPF_X | condition), left, right, 0, to);
}

// The only instruction that occupies two slots.
void BpfAssembler::EmitWide(Register to, uint8_t kind, int32_t low, int32_t high) {
  Emit(BPF_LD | BPF_DW | BPF_IMM, to, kind, 0, low);
  Emit(0, 0, 0, 0, high);
}

void BpfAssembler::SetDouble(Register to, uint64_t value) {
  EmitWide(to, 0, static_cast<int32_t>(value), static_cast<int32_t>(value >> 32));
}

void BpfAssembler::SetMap(Register to, int map_fd) { EmitWide(to, kPseudoMapFd, map_fd, 0); }

void BpfAssembler::SetMapValue(Register to, int map_fd, int32_t offset) {
  EmitWide(to, kPseudoMapValue, map_fd, offset);
}

void BpfAssembler::Call(Helper helper) { Emit(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }

void BpfAssembler::Exit() { Emit(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }

std::vector<bpf_insn> BpfAssembler::Finish() {
  for (const Pending& jump : jumps_) {
    const size_t place = places_[static_cast<size_t>(jump.label)];
    program_[jump.at].off = static_cast<int16_t>(place - jump.at - 1);
  }
  jumps_.clear();
  return program_;
}

}  // namespace exitwatch
