#ifndef EXITWATCH_CORE_BPF_KERNEL_LAYOUT_H_
#define EXITWATCH_CORE_BPF_KERNEL_LAYOUT_H_

#include <cstdint>
#include <optional>

#include "core/bpf/btf.h"

namespace exitwatch {

// From a task to the id of its cgroup in the v2 hierarchy.
struct CgroupPlaces {
  uint32_t in_task;  // its css_set
  uint32_t in_set;   // the cgroup
  uint32_t node;     // its kernfs_node
  uint32_t id;
  struct Name {
    uint32_t text, parent;
  };
  std::optional<Name> name;  // of a kernfs_node
};

// From a task to the file name of the program that it runs.
struct ExecutablePlaces {
  uint32_t in_task;   // its address space
  uint32_t in_space;  // the file
  uint32_t in_file;   // its directory entry
  uint32_t in_entry;  // the name
  // The type id of taskstats_exit(); nothing where the tracepoint sched_process_exit serves.
  std::optional<uint32_t> function;
};

// From a task's struct pid to what it is called in a pid namespace.
struct PidPlaces {
  uint32_t level;         // how deep its own namespace is
  uint32_t numbers;       // an upid for each level
  uint32_t number;        // in a upid
  uint32_t name_space;    // in a upid
  uint32_t number_bytes;  // of a upid
};

// Where the running kernel keeps what the eBPF filter reads: offsets in bytes.
struct KernelLayout {
  struct {
    uint32_t flags, exit_state, exit_code, pid, tgid, real_parent, group_leader, thread_pid;
    uint32_t start_boottime, cred, comm, signal;
  } task;
  struct {
    uint32_t references, threads, group_exit_code, flags;
    // Every dead group has SIGNAL_GROUP_EXIT, and its status in group_exit_code (Linux 6.0, kernel/
    // exit.c, synchronize_group_exit()). Before, a group whose threads ended one by one has
    // neither, and waitpid(2) returns what the first thread ended with (wait_task_zombie()).
    bool always_has_code;
  } signal;
  struct {
    uint32_t euid;
  } cred;
  struct {
    std::optional<uint32_t> inode;  // since Linux 6.9
  } pid;
  // Programs and maps count against RLIMIT_MEMLOCK: a map keeps whose (struct bpf_map_memory,
  // before Linux 5.11).
  bool locks_programs;
  std::optional<CgroupPlaces> cgroup;  // with CONFIG_CGROUPS
  // At a place where a dying task still has its address space, and which tells whether it is the
  // last one of its group: the tracepoint sched_process_exit, since Linux 6.16; or a function, with
  // CONFIG_TASKSTATS.
  std::optional<ExecutablePlaces> executable;
};

// And where it keeps what the signal trace reads.
struct SignalLayout {
  struct {
    uint32_t flags, pid, tgid, real_parent, group_leader, thread_pid;
    uint32_t start_boottime, cred, comm, signal, sighand, blocked, stack, mm, ptrace, parent;
  } task;
  struct {
    uint32_t group_exit_code, flags;
  } signal;
  struct {
    uint32_t action, action_bytes, handler;
    uint32_t handler_in_action;
  } sighand;
  struct {
    uint32_t euid;
  } cred;
  struct {
    uint32_t code, fields;
  } siginfo;
  struct {
    std::optional<uint32_t> inode;  // since Linux 6.9
  } pid;
  PidPlaces pid_there;
  std::optional<CgroupPlaces> cgroup;  // with CONFIG_CGROUPS
  struct Number {
    uint32_t offset, bytes;
  };
  // In pt_regs; negative outside of system calls. Where there is one, bpf_task_pt_regs() is there,
  // too (Linux 5.15).
  std::optional<Number> syscall;
  bool victim_is_task = true;  // what oom:mark_victim is given, since Linux 6.8; before, a pid

  // What no description of types tells.
  // The arguments of signal_generate, in bytes (<trace/events/signal.h>).
  struct {
    int16_t signal = 0, info = 8, task = 16, group = 24, result = 32;
  } arguments;
  // Of <linux/sched.h> and <linux/signal.h>.
  int32_t task_exiting = 0x00000004;        // PF_EXITING
  int32_t task_kernel_thread = 0x00200000;  // PF_KTHREAD
  int32_t no_info = 0;                      // SEND_SIG_NOINFO
  bool is_group_inverted = false;
  bool is_direction_inverted = false;  // who sends is who gets
  // Of a kernel stack, where there is no bpf_task_pt_regs().
  uint32_t stack_bytes = 16 * 1024;
};

// Nothing where the kernel lacks a member, or has it in another form; `missing` names it then.
std::optional<KernelLayout> ResolveKernelLayout(const Btf& btf, const char** missing);
std::optional<SignalLayout> ResolveSignalLayout(const Btf& btf, const char** missing);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_KERNEL_LAYOUT_H_
