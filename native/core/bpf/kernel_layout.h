#ifndef EXITWATCH_CORE_BPF_KERNEL_LAYOUT_H_
#define EXITWATCH_CORE_BPF_KERNEL_LAYOUT_H_

#include <cstdint>
#include <optional>

#include "core/bpf/btf.h"

namespace exitwatch {

// The path from a task to the id of its cgroup in the v2 hierarchy.
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

// The path from a task to the file name of the program that it runs.
struct ExecutablePlaces {
  uint32_t in_task;   // its address space
  uint32_t in_space;  // the file
  uint32_t in_file;   // its directory entry
  uint32_t in_entry;  // the name
  // For the filter: the type id of taskstats_exit(); nothing if the tracepoint sched_process_exit
  // can be used.
  std::optional<uint32_t> function;
};

// The path from a task to the bounds of its arguments in its memory.
struct ArgumentPlaces {
  uint32_t in_task;  // its address space
  uint32_t begin, end;
};

// Where the kernel counts what a process uses: its threads that are gone in its signal_struct, each
// other one in its task.
struct UsagePlaces {
  struct Counter {
    uint32_t in_signal, in_task;
  };
  Counter user, system, runtime;
  uint32_t max_rss;   // in the signal_struct
  uint32_t sequence;  // in the signal_struct: odd while a thread adds its counters to it
  struct Io {
    Counter read, written;
  };
  std::optional<Io> io;  // with CONFIG_TASK_IO_ACCOUNTING
};

// The path from a task's struct pid to its number in a pid namespace.
struct PidPlaces {
  uint32_t level;         // depth of its own namespace
  uint32_t numbers;       // one upid per level
  uint32_t number;        // in an upid
  uint32_t name_space;    // in an upid
  uint32_t number_bytes;  // size of an upid
};

// Where the running kernel keeps what the eBPF filter reads. Offsets in bytes.
struct KernelLayout {
  struct {
    uint32_t flags, exit_state, exit_code, pid, tgid, real_parent, group_leader, thread_pid;
    uint32_t start_boottime, cred, comm, signal, sighand;
  } task;
  struct {
    uint32_t references, threads, live, group_exit_code, flags;
    // Every dead group has SIGNAL_GROUP_EXIT, and its status in group_exit_code (Linux 6.0,
    // kernel/exit.c, synchronize_group_exit()). Before, a group whose threads exited one by one has
    // neither, and waitpid(2) returns the first thread's code (wait_task_zombie()).
    bool always_has_code;
  } signal;
  struct {
    uint32_t euid;
  } cred;
  struct {
    std::optional<uint32_t> inode;  // since Linux 6.9
  } pid;
  // Programs and maps count against RLIMIT_MEMLOCK: a map keeps the account that it charges (struct
  // bpf_map_memory, before Linux 5.11).
  bool locks_programs;
  std::optional<CgroupPlaces> cgroup;  // with CONFIG_CGROUPS
  // The tracepoint sched_process_exit says whether the task is the last one of its group (Linux
  // 6.16). Before, the number of live tasks does.
  bool exit_tells_last;
  // Requires a place where a dying task still has its address space and knows whether it is the
  // last one of its group: the tracepoint sched_process_exit, since Linux 6.16; or a function, with
  // CONFIG_TASKSTATS.
  std::optional<ExecutablePlaces> executable;
  std::optional<UsagePlaces> usage;
  std::optional<ArgumentPlaces> arguments;
};

// Where the running kernel keeps what the signal trace reads.
struct SignalLayout {
  struct {
    uint32_t flags, pid, tgid, real_parent, group_leader, thread_pid;
    uint32_t start_boottime, cred, comm, signal, sighand, blocked, stack, mm, ptrace, parent;
    uint32_t real_blocked;  // while it waits for some of what it blocks, sigtimedwait(2)
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
  std::optional<ExecutablePlaces> executable;
  std::optional<ArgumentPlaces> command_line;
  struct Number {
    uint32_t offset, bytes;
  };
  // In pt_regs; negative outside of system calls. Not used on kernels without bpf_task_pt_regs()
  // (Linux 5.15).
  std::optional<Number> syscall;
  bool victim_is_task = true;  // the argument of oom:mark_victim since Linux 6.8; before, a pid

  // Facts that BTF does not describe. First the arguments of signal_generate, in bytes
  // (<trace/events/signal.h>).
  struct {
    int16_t signal = 0, info = 8, task = 16, group = 24, result = 32;
  } arguments;
  // From <linux/sched.h> and <linux/signal.h>.
  int32_t task_exiting = 0x00000004;        // PF_EXITING
  int32_t task_kernel_thread = 0x00200000;  // PF_KTHREAD
  int32_t no_info = 0;                      // SEND_SIG_NOINFO
  bool is_group_inverted = false;
  bool is_direction_inverted = false;  // swaps sender and target
  // The size of a kernel stack, for kernels without bpf_task_pt_regs().
  uint32_t stack_bytes = 16 * 1024;
};

// Nothing if the kernel lacks a member or has it in another form. `missing` then names it.
std::optional<KernelLayout> ResolveKernelLayout(const Btf& btf, const char** missing);
std::optional<SignalLayout> ResolveSignalLayout(const Btf& btf, const char** missing);

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_KERNEL_LAYOUT_H_
