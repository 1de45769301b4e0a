#include "core/bpf/exit_note_program.h"

#include "core/bpf/kernel_program.h"

namespace exitwatch {

namespace {

using Asm = BpfAssembler;

// The arguments: the current task, and whether it is the last one of its group
// (<trace/events/sched.h>, <linux/taskstats_kern.h>).
constexpr int16_t kGroupDead = 8;

// The stack below kScratch.
constexpr int16_t kPidAt = -16;
constexpr int16_t kKeyAt = kPidAt - static_cast<int16_t>(sizeof(ExitNoteKey));
constexpr int16_t kNoteAt = kKeyAt - static_cast<int16_t>(sizeof(ExitNote));
constexpr int16_t kSlotsAt = kNoteAt - 24;

constexpr Asm::Register kTask = Asm::kR7;
constexpr Asm::Register kFirst = Asm::kR8;  // the first thread of its group
constexpr Asm::Register kOther = Asm::kR9;  // the object being followed

class Program : KernelProgram {
 public:
  Program(const KernelLayout& layout, const ExitNoteMaps& maps, ExitNoteTurn turn)
      : layout_(layout), maps_(maps), turn_(turn) {}

  std::vector<bpf_insn> Build() {
    done_ = code_.NewLabel();
    if (layout_.executable) Note(*layout_.executable);
    code_.Bind(done_);
    code_.Set(Asm::kR0, 0);
    code_.Exit();
    return code_.Finish();
  }

 private:
  void Note(const ExecutablePlaces& places) {
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kR1, kGroupDead);
    code_.Compute(BPF_AND, Asm::kR1, 0xff);  // a bool, or a flag
    code_.JumpIf(BPF_JEQ, Asm::kR1, 0, done_);
    code_.Call(Asm::kGetCurrentTask);
    code_.Move(kTask, Asm::kR0);
    Read(kPidAt, 4, kTask, layout_.task.tgid);
    if (maps_.watched >= 0) {
      RequireWatched(maps_.watched, kPidAt, done_);
    }
    ReadPointer(kFirst, kTask, layout_.task.group_leader);
    ReadPointer(Asm::kR1, kTask, layout_.task.signal);
    code_.Store(Asm::kDouble, Asm::kFrame, KeyField(offsetof(ExitNoteKey, group)), Asm::kR1);
    Read(KeyField(offsetof(ExitNoteKey, start_ns)), 8, kFirst, layout_.task.start_boottime);
    if (turn_ == ExitNoteTurn::kBackup) {
      code_.SetMap(Asm::kR1, maps_.notes);
      PointTo(Asm::kR2, kKeyAt);
      code_.Call(Asm::kMapLookup);
      code_.JumpIf(BPF_JNE, Asm::kR0, 0, done_);
    }
    if (maps_.command_lines >= 0 && layout_.arguments) {
      TellCommandLine(*layout_.arguments, kTask, kOther, kPidAt,
                      KeyField(offsetof(ExitNoteKey, start_ns)), maps_.command_lines,
                      maps_.command_lines_bytes, kSlotsAt, [] {});
    }
    Clear(kNoteAt, sizeof(ExitNote));
    // Kernel threads have no address space.
    ReadExecutable(places, kTask, kOther, NoteField(offsetof(ExitNote, executable)),
                   kExecutableBytes, done_);
    if (layout_.pid.inode) {
      ReadPointer(kOther, kFirst, layout_.task.thread_pid);
      Read(NoteField(offsetof(ExitNote, inode)), 8, kOther, *layout_.pid.inode);
    }
    ReadPointer(kOther, kFirst, layout_.task.real_parent);
    Read(NoteField(offsetof(ExitNote, parent_pid)), 4, kOther, layout_.task.tgid);
    ReadPointer(kOther, kOther, layout_.task.group_leader);
    Read(NoteField(offsetof(ExitNote, parent_name)), kNameBytes, kOther, layout_.task.comm);
    code_.SetMap(Asm::kR1, maps_.notes);
    PointTo(Asm::kR2, kKeyAt);
    PointTo(Asm::kR3, kNoteAt);
    code_.Set(Asm::kR4, BPF_ANY);
    code_.Call(Asm::kMapUpdate);
  }

  static constexpr int16_t KeyField(size_t offset) {
    return static_cast<int16_t>(kKeyAt + static_cast<int16_t>(offset));
  }

  static constexpr int16_t NoteField(size_t offset) {
    return static_cast<int16_t>(kNoteAt + static_cast<int16_t>(offset));
  }

  const KernelLayout& layout_;
  const ExitNoteMaps& maps_;
  const ExitNoteTurn turn_;
  Asm::Label done_ = {0};
};

}  // namespace

std::vector<bpf_insn> BuildExitNoteProgram(const KernelLayout& layout, const ExitNoteMaps& maps,
                                           ExitNoteTurn turn) {
  return Program(layout, maps, turn).Build();
}

}  // namespace exitwatch
