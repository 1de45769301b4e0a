#ifndef EXITWATCH_CORE_BPF_KERNEL_PROGRAM_H_
#define EXITWATCH_CORE_BPF_KERNEL_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/bpf/bpf_assembler.h"
#include "core/bpf/cgroup_record.h"
#include "core/bpf/command_line_record.h"
#include "core/bpf/kernel_layout.h"
#include "core/bpf/recorder_program.h"

namespace exitwatch {

// Common parts of our BPF programs: they follow pointers through kernel memory, look up the set of
// watched processes, and write a record to a ring buffer.
class KernelProgram {
 protected:
  using Asm = BpfAssembler;

  // The topmost stack slot, used for reading.
  static constexpr int16_t kScratch = -8;

  // Flags of bpf_ringbuf_output(), passed in r4.
  static constexpr int32_t kNoWakeup = 1;
  static constexpr int32_t kForceWakeup = 2;

  // Reads kernel memory into a stack slot; unreadable memory becomes zeros. Clobbers r1 to r5.
  void Read(int16_t to, int32_t size, Asm::Register base, uint32_t offset);
  void ReadWord(Asm::Register to, Asm::Register base, uint32_t offset);
  void ReadPointer(Asm::Register to, Asm::Register base, uint32_t offset);

  // Reads the id of a task's cgroup in the v2 hierarchy into a stack slot. Clobbers `scratch`.
  void ReadCgroup(const CgroupPlaces& places, Asm::Register task, Asm::Register scratch,
                  int16_t to);

  // Writes the path of a task's cgroup to a ring buffer, unless that was done before. `id_at` holds
  // its id; `known_map` is an array of kKnownCgroups ids. Preserves `task`; clobbers all else, and
  // the stack from `slots_at` to `slots_at` + 16.
  void TellCgroup(const CgroupPlaces& places, Asm::Register task, Asm::Register scratch,
                  int16_t id_at, int known_map, int ring_map, int16_t slots_at);

  // Reads the file name of the program that a task runs, cut to `bytes`, if the task still has its
  // address space; goes to `otherwise` if not. Leaves `task` alone.
  void ReadExecutable(const ExecutablePlaces& places, Asm::Register task, Asm::Register scratch,
                      int16_t to, size_t bytes, Asm::Label otherwise);

  // Writes the arguments of a task's process to a ring buffer of this size, if it still has its
  // address space, and the buffer is not more than a quarter full: they must not take the place of
  // records that say more. Its pid and start stand at these places; `on_told` generates what
  // follows if they were written. Preserves `task`; clobbers all else, and the stack from
  // `slots_at` to `slots_at` + 24.
  void TellCommandLine(const ArgumentPlaces& places, Asm::Register task, Asm::Register scratch,
                       int16_t pid_at, int16_t start_at, int ring_map, size_t ring_bytes,
                       int16_t slots_at, const std::function<void()>& on_told);

  // Jumps if a ring buffer holds more than this. Clobbers r0 to r5.
  void JumpIfFuller(int ring_map, size_t bytes, Asm::Label to);

  // Writes the RecorderKey of a process to a place on the stack, by its inode, or its pid and
  // start, which stand at these places.
  void MakeKey(int16_t to, bool has_inode, int16_t inode_at, int16_t pid_at, int16_t start_at);

  // If the recorder with this state has had no reader for too long, counts a loss and goes to
  // `otherwise`. Writes the time, on CLOCK_BOOTTIME, to a place on the stack.
  void RequireLease(int state_map, int16_t time_at, size_t loss_offset, Asm::Label otherwise);

  // Jumps to `otherwise` unless the set contains the process whose id is in this stack slot. An id
  // beyond the set's end, after kernel.pid_max was raised, passes: user space checks it then.
  void RequireWatched(int watched_map, int16_t pid_at, Asm::Label otherwise);

  void Clear(int16_t at, size_t bytes);
  void PointTo(Asm::Register to, int16_t at);

  // Writes what stands at this place, with the flags that are in r4, and goes to `written`; goes on
  // if there is no room for it.
  void Output(int ring_map, int16_t at, size_t bytes, Asm::Label written);

  // Adds to a RecorderLoss at this place in the state. Clobbers r0 to r5.
  void CountLoss(int state_map, size_t loss_offset);

  // Writes the stack's content at `at`, with the flags in r4, or counts that it did not fit.
  void WriteRecord(int ring_map, int16_t at, size_t bytes, int state_map, size_t lost_offset);

  BpfAssembler code_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_KERNEL_PROGRAM_H_
