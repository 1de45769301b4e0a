#include "core/bpf/spoilt_layout.h"

#include <utility>

namespace exitwatch {

void SpoilLayout(const std::string& spoil, SignalLayout* layout) {
  const auto is = [&](const char* name) { return spoil == name; };
  constexpr int32_t kWrongFlag = 0x40000000;  // PF_FREEZER_SKIP, or nothing
  if (is("pid")) layout->task.tgid = layout->task.pid;
  if (is("uid")) layout->cred.euid = 0;  // the number of its users
  if (is("signal")) layout->arguments.signal = layout->arguments.group;
  if (is("arguments")) std::swap(layout->arguments.info, layout->arguments.task);
  if (is("no-info")) layout->no_info = 7;  // signals from the kernel then have a siginfo of zeros
  if (is("kernel-thread")) layout->task_kernel_thread = ~0;
  if (is("group")) layout->is_group_inverted = true;
  if (is("direction")) layout->is_direction_inverted = true;
  if (is("code")) layout->siginfo.code -= 4;  // si_errno
  if (is("value")) layout->siginfo.fields += 8;
  if (is("exit")) layout->task_exiting = kWrongFlag;
  if (is("start")) layout->task.start_boottime += 8;  // the next field
  if (is("name")) layout->task.comm += 1;
  if (is("stack")) {
    layout->syscall.reset();
    layout->stack_bytes = 1;
  }
  if (is("parent")) layout->task.real_parent = layout->task.group_leader;
  if (is("thread")) layout->task.pid = layout->task.tgid;
}

}  // namespace exitwatch
