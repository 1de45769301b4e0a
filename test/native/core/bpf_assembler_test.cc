#include <vector>

#include "check.h"
#include "core/bpf/bpf_assembler.h"
#include "tests.h"

namespace exitwatch {

namespace {

void JumpsReachTheirLabels() {
  BpfAssembler code;
  const BpfAssembler::Label end = code.NewLabel();
  const BpfAssembler::Label again = code.NewLabel();
  code.Bind(again);
  code.JumpIf32(BPF_JEQ, BpfAssembler::kR1, 7, end);
  code.SetMap(BpfAssembler::kR1, 3);  // takes two slots
  code.Jump(again);
  code.Bind(end);
  code.Exit();
  const std::vector<bpf_insn> program = code.Finish();
  CHECK_EQUAL(program.size(), 5u);
  CHECK_EQUAL(program[0].off, 3);
  CHECK_EQUAL(program[3].off, -4);
}

}  // namespace

void test::BpfAssemblerTests() { JumpsReachTheirLabels(); }

}  // namespace exitwatch
