#include "core/bpf/kernel_program.h"

#include <iterator>

namespace exitwatch {

void KernelProgram::Read(int16_t to, int32_t size, Asm::Register base, uint32_t offset) {
  code_.Move(Asm::kR3, base);
  code_.Compute(BPF_ADD, Asm::kR3, static_cast<int32_t>(offset));
  code_.Move(Asm::kR1, Asm::kFrame);
  code_.Compute(BPF_ADD, Asm::kR1, to);
  code_.Set(Asm::kR2, size);
  code_.Call(Asm::kProbeReadKernel);
}

void KernelProgram::ReadWord(Asm::Register to, Asm::Register base, uint32_t offset) {
  Read(kScratch, 4, base, offset);
  code_.Load(Asm::kWord, to, Asm::kFrame, kScratch);
}

void KernelProgram::ReadPointer(Asm::Register to, Asm::Register base, uint32_t offset) {
  Read(kScratch, 8, base, offset);
  code_.Load(Asm::kDouble, to, Asm::kFrame, kScratch);
}

void KernelProgram::ReadCgroup(const CgroupPlaces& places, Asm::Register task,
                               Asm::Register scratch, int16_t to) {
  ReadPointer(scratch, task, places.in_task);
  ReadPointer(scratch, scratch, places.in_set);
  ReadPointer(scratch, scratch, places.node);
  Read(to, 8, scratch, places.id);
}

void KernelProgram::TellCgroup(const CgroupPlaces& places, Asm::Register task,
                               Asm::Register scratch, int16_t id_at, int known_map, int ring_map,
                               int16_t slots_at) {
  if (!places.name || known_map < 0) return;
  const auto record_at = static_cast<int16_t>(slots_at + 8);
  const Asm::Label done = code_.NewLabel();
  const Asm::Label submit = code_.NewLabel();

  // Already known?
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, id_at);
  code_.JumpIf(BPF_JEQ, Asm::kR1, 0, done);
  code_.Compute(BPF_AND, Asm::kR1, kKnownCgroups - 1);
  code_.Store(Asm::kWord, Asm::kFrame, kScratch, Asm::kR1);
  code_.SetMap(Asm::kR1, known_map);
  code_.Move(Asm::kR2, Asm::kFrame);
  code_.Compute(BPF_ADD, Asm::kR2, kScratch);
  code_.Call(Asm::kMapLookup);
  code_.JumpIf(BPF_JEQ, Asm::kR0, 0, done);
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, id_at);
  code_.Load(Asm::kDouble, Asm::kR2, Asm::kR0, 0);
  code_.JumpIf(BPF_JEQ, Asm::kR1, Asm::kR2, done);
  code_.Store(Asm::kDouble, Asm::kFrame, slots_at, Asm::kR0);

  code_.SetMap(Asm::kR1, ring_map);
  code_.Set(Asm::kR2, static_cast<int32_t>(sizeof(CgroupRecord)));
  code_.Set(Asm::kR3, 0);
  code_.Call(Asm::kRingbufReserve);
  code_.JumpIf(BPF_JEQ, Asm::kR0, 0, done);
  code_.Store(Asm::kDouble, Asm::kFrame, record_at, Asm::kR0);
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, id_at);
  code_.Store(Asm::kDouble, Asm::kR0, offsetof(CgroupRecord, id), Asm::kR1);
  // The record is reserved before the id counts as known: a program that finds the id here writes
  // its own record behind the path.
  code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, slots_at);
  code_.Store(Asm::kDouble, Asm::kR2, 0, Asm::kR1);
  code_.StoreValue(Asm::kDouble, Asm::kR0, offsetof(CgroupRecord, levels), 0);

  ReadPointer(scratch, task, places.in_task);
  ReadPointer(scratch, scratch, places.in_set);
  ReadPointer(scratch, scratch, places.node);
  for (size_t level = 0; level <= CgroupRecord::kLevels; level++) {
    // The root has no parent and no name.
    ReadPointer(Asm::kR1, scratch, places.name->parent);
    code_.JumpIf(BPF_JEQ, Asm::kR1, 0, submit);
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, record_at);
    code_.StoreValue(Asm::kWord, Asm::kR1, offsetof(CgroupRecord, levels),
                     static_cast<int32_t>(level + 1));
    if (level == CgroupRecord::kLevels) break;
    ReadPointer(Asm::kR3, scratch, places.name->text);
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, record_at);
    code_.Compute(
        BPF_ADD, Asm::kR1,
        static_cast<int32_t>(offsetof(CgroupRecord, names) + level * CgroupRecord::kLevelBytes));
    code_.Set(Asm::kR2, static_cast<int32_t>(CgroupRecord::kLevelBytes));
    code_.Call(Asm::kProbeReadKernelStr);
    ReadPointer(scratch, scratch, places.name->parent);
  }
  code_.Bind(submit);
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, record_at);
  code_.Set(Asm::kR2, kNoWakeup);
  code_.Call(Asm::kRingbufSubmit);
  code_.Bind(done);
}

// Kernel threads have no address space.
void KernelProgram::ReadExecutable(const ExecutablePlaces& places, Asm::Register task,
                                   Asm::Register scratch, int16_t to, size_t bytes,
                                   Asm::Label otherwise) {
  ReadPointer(scratch, task, places.in_task);
  for (const uint32_t offset : {places.in_space, places.in_file, places.in_entry}) {
    code_.JumpIf(BPF_JEQ, scratch, 0, otherwise);
    ReadPointer(scratch, scratch, offset);
  }
  code_.JumpIf(BPF_JEQ, scratch, 0, otherwise);
  Clear(to, bytes);
  PointTo(Asm::kR1, to);
  code_.Set(Asm::kR2, static_cast<int32_t>(bytes));
  code_.Move(Asm::kR3, scratch);
  code_.Call(Asm::kProbeReadKernelStr);
}

void KernelProgram::TellCommandLine(const ArgumentPlaces& places, Asm::Register task,
                                    Asm::Register scratch, int16_t pid_at, int16_t start_at,
                                    int ring_map, size_t ring_bytes, int16_t slots_at,
                                    const std::function<void()>& on_told) {
  const int16_t begin_at = slots_at;
  const auto length_at = static_cast<int16_t>(slots_at + 8);
  const auto record_at = static_cast<int16_t>(slots_at + 16);
  const Asm::Label done = code_.NewLabel();
  const Asm::Label submit = code_.NewLabel();
  // Sets r1 to the current bounds' length; goes to `otherwise` if they begin elsewhere.
  const auto look_again = [&](Asm::Label otherwise) {
    ReadPointer(Asm::kR1, scratch, places.begin);
    code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, begin_at);
    code_.JumpIf(BPF_JNE, Asm::kR1, Asm::kR2, otherwise);
    ReadPointer(Asm::kR1, scratch, places.end);
    code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, begin_at);
    code_.Compute(BPF_SUB, Asm::kR1, Asm::kR2);
  };

  ReadPointer(scratch, task, places.in_task);
  code_.JumpIf(BPF_JEQ, scratch, 0, done);
  JumpIfFuller(ring_map, ring_bytes / 4, done);
  Read(begin_at, 8, scratch, places.begin);
  look_again(done);
  // Amid an exec, the new end is not set yet (create_elf_tables): what follows may be the
  // environment.
  constexpr int32_t kMostArguments = 1 << 27;
  code_.JumpIf(BPF_JGT, Asm::kR1, kMostArguments, done);
  code_.Store(Asm::kDouble, Asm::kFrame, length_at, Asm::kR1);

  constexpr size_t kHeader = sizeof(CommandLineRecord);
  constexpr size_t kLargest = CommandLineRecord::kSizes[std::size(CommandLineRecord::kSizes) - 1];
  for (const size_t size : CommandLineRecord::kSizes) {
    const auto room = static_cast<int32_t>(size - kHeader);
    const Asm::Label next = code_.NewLabel();
    const Asm::Label fits = code_.NewLabel();
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, length_at);
    if (size != kLargest) code_.JumpIf(BPF_JGT, Asm::kR1, room, next);
    code_.SetMap(Asm::kR1, ring_map);
    code_.Set(Asm::kR2, static_cast<int32_t>(size));
    code_.Set(Asm::kR3, 0);
    code_.Call(Asm::kRingbufReserve);
    code_.JumpIf(BPF_JEQ, Asm::kR0, 0, done);
    code_.Store(Asm::kDouble, Asm::kFrame, record_at, Asm::kR0);
    code_.StoreValue(Asm::kDouble, Asm::kR0, offsetof(CommandLineRecord, mark), -1);
    code_.StoreValue(Asm::kWord, Asm::kR0, offsetof(CommandLineRecord, failed), 1);
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, start_at);
    code_.Store(Asm::kDouble, Asm::kR0, offsetof(CommandLineRecord, start_ns), Asm::kR1);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, pid_at);
    code_.Store(Asm::kWord, Asm::kR0, offsetof(CommandLineRecord, pid), Asm::kR1);
    code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, length_at);
    code_.Store(Asm::kDouble, Asm::kR0, offsetof(CommandLineRecord, length), Asm::kR2);
    code_.JumpIf(BPF_JLE, Asm::kR2, room, fits);
    code_.Set(Asm::kR2, room);
    code_.Bind(fits);
    code_.Move(Asm::kR1, Asm::kR0);
    code_.Compute(BPF_ADD, Asm::kR1, static_cast<int32_t>(kHeader));
    code_.Load(Asm::kDouble, Asm::kR3, Asm::kFrame, begin_at);
    code_.Call(Asm::kProbeReadUser);
    code_.JumpIf(BPF_JNE, Asm::kR0, 0, submit);
    // If the process moved them meanwhile, something else may be there.
    look_again(submit);
    code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, length_at);
    code_.JumpIf(BPF_JNE, Asm::kR1, Asm::kR2, submit);
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, record_at);
    code_.StoreValue(Asm::kWord, Asm::kR1, offsetof(CommandLineRecord, failed), 0);
    code_.Jump(submit);
    code_.Bind(next);
  }
  code_.Bind(submit);
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, record_at);
  code_.Set(Asm::kR2, kNoWakeup);
  code_.Call(Asm::kRingbufSubmit);
  on_told();
  code_.Bind(done);
}

void KernelProgram::JumpIfFuller(int ring_map, size_t bytes, Asm::Label to) {
  constexpr int32_t kAvailableData = 0;  // BPF_RB_AVAIL_DATA
  code_.SetMap(Asm::kR1, ring_map);
  code_.Set(Asm::kR2, kAvailableData);
  code_.Call(Asm::kRingbufQuery);
  code_.JumpIf(BPF_JGT, Asm::kR0, static_cast<int32_t>(bytes), to);
}

void KernelProgram::MakeKey(int16_t to, bool has_inode, int16_t inode_at, int16_t pid_at,
                            int16_t start_at) {
  constexpr int32_t kNsPerTick = 10'000'000;  // USER_HZ is 100 on all that we support
  const auto ticks_at = static_cast<int16_t>(to + offsetof(RecorderKey, start_ticks));
  if (has_inode) {
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, inode_at);
    code_.Store(Asm::kDouble, Asm::kFrame, to, Asm::kR1);
    code_.StoreValue(Asm::kDouble, Asm::kFrame, ticks_at, 0);
    return;
  }
  code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, pid_at);
  code_.Store(Asm::kDouble, Asm::kFrame, to, Asm::kR1);
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, start_at);
  code_.Compute(BPF_DIV, Asm::kR1, kNsPerTick);
  code_.Store(Asm::kDouble, Asm::kFrame, ticks_at, Asm::kR1);
}

void KernelProgram::RequireLease(int state_map, int16_t time_at, size_t loss_offset,
                                 Asm::Label otherwise) {
  const Asm::Label has_lease = code_.NewLabel();
  code_.Call(Asm::kKtimeGetBootNs);
  code_.Store(Asm::kDouble, Asm::kFrame, time_at, Asm::kR0);
  code_.SetMapValue(Asm::kR1, state_map, offsetof(RecorderState, lease_ns));
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kR1, 0);
  code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, time_at);
  code_.JumpIf(BPF_JGT, Asm::kR1, Asm::kR2, has_lease);
  CountLoss(state_map, loss_offset);
  code_.Jump(otherwise);
  code_.Bind(has_lease);
}

void KernelProgram::RequireWatched(int watched_map, int16_t pid_at, Asm::Label otherwise) {
  const Asm::Label beyond = code_.NewLabel();
  code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, pid_at);
  code_.Compute(BPF_RSH, Asm::kR1, 6);
  code_.Store(Asm::kWord, Asm::kFrame, kScratch, Asm::kR1);
  code_.SetMap(Asm::kR1, watched_map);
  code_.Move(Asm::kR2, Asm::kFrame);
  code_.Compute(BPF_ADD, Asm::kR2, kScratch);
  code_.Call(Asm::kMapLookup);
  code_.JumpIf(BPF_JEQ, Asm::kR0, 0, beyond);
  code_.Load(Asm::kDouble, Asm::kR1, Asm::kR0, 0);
  code_.Load(Asm::kWord, Asm::kR2, Asm::kFrame, pid_at);
  code_.Compute(BPF_AND, Asm::kR2, 63);
  code_.Compute(BPF_RSH, Asm::kR1, Asm::kR2);
  code_.Compute(BPF_AND, Asm::kR1, 1);
  code_.JumpIf(BPF_JEQ, Asm::kR1, 0, otherwise);
  code_.Bind(beyond);
}

void KernelProgram::Clear(int16_t at, size_t bytes) {
  for (int16_t offset = 0; offset < static_cast<int16_t>(bytes); offset += 8) {
    code_.StoreValue(Asm::kDouble, Asm::kFrame, static_cast<int16_t>(at + offset), 0);
  }
}

void KernelProgram::PointTo(Asm::Register to, int16_t at) {
  code_.Move(to, Asm::kFrame);
  code_.Compute(BPF_ADD, to, at);
}

void KernelProgram::Output(int ring_map, int16_t at, size_t bytes, Asm::Label written) {
  code_.SetMap(Asm::kR1, ring_map);
  PointTo(Asm::kR2, at);
  code_.Set(Asm::kR3, static_cast<int32_t>(bytes));
  code_.Call(Asm::kRingbufOutput);
  code_.JumpIf(BPF_JEQ, Asm::kR0, 0, written);
}

void KernelProgram::CountLoss(int state_map, size_t loss_offset) {
  const Asm::Label has_first = code_.NewLabel();
  code_.Call(Asm::kKtimeGetBootNs);
  code_.Move(Asm::kR3, Asm::kR0);
  const auto at = [&](size_t field) { return static_cast<int16_t>(field); };
  code_.SetMapValue(Asm::kR1, state_map, static_cast<int32_t>(loss_offset));
  code_.Load(Asm::kDouble, Asm::kR2, Asm::kR1, at(offsetof(RecorderLoss, first_ns)));
  code_.JumpIf(BPF_JNE, Asm::kR2, 0, has_first);
  code_.Store(Asm::kDouble, Asm::kR1, at(offsetof(RecorderLoss, first_ns)), Asm::kR3);
  code_.Bind(has_first);
  code_.Store(Asm::kDouble, Asm::kR1, at(offsetof(RecorderLoss, last_ns)), Asm::kR3);
  code_.Set(Asm::kR2, 1);
  code_.AtomicAdd(Asm::kDouble, Asm::kR1, at(offsetof(RecorderLoss, count)), Asm::kR2);
}

void KernelProgram::WriteRecord(int ring_map, int16_t at, size_t bytes, int state_map,
                                size_t lost_offset) {
  const Asm::Label written = code_.NewLabel();
  Output(ring_map, at, bytes, written);
  code_.SetMapValue(Asm::kR1, state_map, static_cast<int32_t>(lost_offset));
  code_.Set(Asm::kR2, 1);
  code_.AtomicAdd(Asm::kDouble, Asm::kR1, 0, Asm::kR2);
  code_.Bind(written);
}

}  // namespace exitwatch
