#ifndef EXITWATCH_CORE_BPF_KERNEL_PROGRAM_H_
#define EXITWATCH_CORE_BPF_KERNEL_PROGRAM_H_

#include <cstddef>
#include <cstdint>

#include "core/bpf/bpf_assembler.h"
#include "core/bpf/cgroup_record.h"
#include "core/bpf/kernel_layout.h"

namespace exitwatch {

// What our BPF programs have in common: they follow pointers through the kernel's memory, look into
// the set of watched processes, and write one record to a ring buffer.
class KernelProgram {
 protected:
  using Asm = BpfAssembler;

  // A place on the stack to read into: the first one from the frame pointer down.
  static constexpr int16_t kScratch = -8;

  // Flags of bpf_ringbuf_output(), to be in r4.
  static constexpr int32_t kNoWakeup = 1;
  static constexpr int32_t kForceWakeup = 2;

  // Reads kernel memory to a place on the stack; what cannot be read is zeros there. Takes r1 to
  // r5.
  void Read(int16_t to, int32_t size, Asm::Register base, uint32_t offset);
  void ReadWord(Asm::Register to, Asm::Register base, uint32_t offset);
  void ReadPointer(Asm::Register to, Asm::Register base, uint32_t offset);

  // Reads the id of a task's cgroup in the v2 hierarchy to a place on the stack, by way of
  // `scratch`.
  void ReadCgroup(const CgroupPlaces& places, Asm::Register task, Asm::Register scratch,
                  int16_t to);

  // Writes the path of a task's cgroup to a ring buffer, unless that was done before; its id stands
  // at `id_at`. `known_map`: an array of kKnownCgroups ids. Leaves `task` alone; takes all else,
  // and the places on the stack from `slots_at` to `slots_at` + 16.
  void TellCgroup(const CgroupPlaces& places, Asm::Register task, Asm::Register scratch,
                  int16_t id_at, int known_map, int ring_map, int16_t slots_at);

  // Goes to `otherwise` unless the process whose id stands at this place is in the set, or beyond
  // its end, since kernel.pid_max was raised: user space looks for itself then.
  void RequireWatched(int watched_map, int16_t pid_at, Asm::Label otherwise);

  void Clear(int16_t at, size_t bytes);

  // Writes what stands at this place, with the flags that are in r4, or counts that there was no
  // room for it.
  void WriteRecord(int ring_map, int16_t at, size_t bytes, int state_map, size_t lost_offset);

  BpfAssembler code_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_KERNEL_PROGRAM_H_
