#include "core/kernel_layout.h"

#include "core/proc_stat.h"

namespace exitwatch {

namespace {

struct Wanted {
  const char* structure;
  const char* member;
  uint32_t size;
  uint32_t* offset;
};

}  // namespace

std::optional<KernelLayout> ResolveKernelLayout(const Btf& btf, const char** missing) {
  constexpr uint32_t kPointer = 8;
  KernelLayout layout = {};
  uint32_t threads_that_run = 0;
  const Wanted wanted[] = {
      {"task_struct", "flags", 4, &layout.task.flags},
      {"task_struct", "exit_state", 4, &layout.task.exit_state},
      {"task_struct", "pid", 4, &layout.task.pid},
      {"task_struct", "tgid", 4, &layout.task.tgid},
      {"task_struct", "real_parent", kPointer, &layout.task.real_parent},
      {"task_struct", "group_leader", kPointer, &layout.task.group_leader},
      {"task_struct", "thread_pid", kPointer, &layout.task.thread_pid},
      {"task_struct", "start_boottime", 8, &layout.task.start_boottime},
      {"task_struct", "cred", kPointer, &layout.task.cred},
      {"task_struct", "comm", kNameBytes, &layout.task.comm},
      {"task_struct", "signal", kPointer, &layout.task.signal},
      {"signal_struct", "sigcnt", 4, &layout.signal.references},
      {"signal_struct", "nr_threads", 4, &layout.signal.threads},
      {"signal_struct", "group_exit_code", 4, &layout.signal.group_exit_code},
      {"signal_struct", "flags", 4, &layout.signal.flags},
      // Not read: since it exists (Linux 6.0), every dead group has SIGNAL_GROUP_EXIT and its code.
      {"signal_struct", "quick_threads", 4, &threads_that_run},
      {"cred", "euid", 4, &layout.cred.euid},
  };
  for (const Wanted& field : wanted) {
    const std::optional<Btf::Member> found = btf.Find(field.structure, field.member);
    if (!found || found->size != field.size) {
      *missing = field.member;
      return std::nullopt;
    }
    *field.offset = found->offset;
  }
  const std::optional<Btf::Member> inode = btf.Find("pid", "ino");
  if (inode && inode->size == 8) layout.pid.inode = inode->offset;
  return layout;
}

}  // namespace exitwatch
