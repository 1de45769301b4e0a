#include "core/bpf/kernel_layout.h"

#include "core/parse/proc_stat.h"

namespace exitwatch {

namespace {

struct Wanted {
  const char* structure;
  const char* member;
  uint32_t size;
  uint32_t* offset;
};

constexpr uint32_t kPointer = 8;

template <size_t kCount>
bool FindAll(const Btf& btf, const Wanted (&wanted)[kCount], const char** missing) {
  for (const Wanted& field : wanted) {
    const std::optional<Btf::Member> found = btf.Find(field.structure, field.member);
    if (!found || found->size != field.size) {
      *missing = field.member;
      return false;
    }
    *field.offset = found->offset;
  }
  return true;
}

std::optional<CgroupPlaces> FindCgroup(const Btf& btf) {
  CgroupPlaces places = {};
  const Wanted wanted[] = {
      {"task_struct", "cgroups", kPointer, &places.in_task},
      {"css_set", "dfl_cgrp", kPointer, &places.in_set},
      {"cgroup", "kn", kPointer, &places.node},
      {"kernfs_node", "id", 8, &places.id},
  };
  const char* missing = "";
  if (!FindAll(btf, wanted, &missing)) return std::nullopt;
  CgroupPlaces::Name name = {};
  const Wanted text[] = {{"kernfs_node", "name", kPointer, &name.text}};
  const Wanted parent[] = {{"kernfs_node", "parent", kPointer, &name.parent}};
  const Wanted parent_now[] = {{"kernfs_node", "__parent", kPointer, &name.parent}};  // Linux 6.15
  if (FindAll(btf, text, &missing) &&
      (FindAll(btf, parent, &missing) || FindAll(btf, parent_now, &missing))) {
    places.name = name;
  }
  return places;
}

// The first parameter is the tracepoint's own; the third one came when it was moved.
bool ExitTellsLast(const Btf& btf) {
  return btf.CountParameters("btf_trace_sched_process_exit") == 3u;
}

std::optional<ExecutablePlaces> FindExecutable(const Btf& btf) {
  constexpr uint32_t kPath = 2 * kPointer;
  constexpr uint32_t kName = 2 * kPointer;
  ExecutablePlaces places = {};
  uint32_t path, entry, name, text;
  const Wanted wanted[] = {
      {"task_struct", "mm", kPointer, &places.in_task},
      {"mm_struct", "exe_file", kPointer, &places.in_space},
      {"file", "f_path", kPath, &path},
      {"path", "dentry", kPointer, &entry},
      {"dentry", "d_name", kName, &name},
      {"qstr", "name", kPointer, &text},
  };
  const char* missing = "";
  if (!FindAll(btf, wanted, &missing)) return std::nullopt;
  places.in_file = path + entry;
  places.in_entry = name + text;
  return places;
}

// Of a dying task.
std::optional<ExecutablePlaces> FindLastExecutable(const Btf& btf) {
  std::optional<ExecutablePlaces> places = FindExecutable(btf);
  if (!places || ExitTellsLast(btf)) return places;
  places->function = btf.FindFunction("taskstats_exit", 2);
  if (!places->function) return std::nullopt;
  return places;
}

std::optional<ArgumentPlaces> FindArguments(const Btf& btf) {
  ArgumentPlaces places = {};
  const Wanted wanted[] = {
      {"task_struct", "mm", kPointer, &places.in_task},
      {"mm_struct", "arg_start", 8, &places.begin},
      {"mm_struct", "arg_end", 8, &places.end},
  };
  const char* missing = "";
  if (!FindAll(btf, wanted, &missing)) return std::nullopt;
  return places;
}

bool FindCounter(const Btf& btf, const char* in_signal, const char* in_task,
                 UsagePlaces::Counter* counter) {
  const Wanted wanted[] = {{"signal_struct", in_signal, 8, &counter->in_signal},
                           {"task_struct", in_task, 8, &counter->in_task}};
  const char* missing = "";
  return FindAll(btf, wanted, &missing);
}

std::optional<UsagePlaces> FindUsage(const Btf& btf) {
  UsagePlaces places = {};
  const Wanted wanted[] = {
      {"signal_struct", "sum_sched_runtime", 8, &places.runtime.in_signal},
      {"sched_entity", "sum_exec_runtime", 8, &places.runtime.in_task},
      {"signal_struct", "maxrss", 8, &places.max_rss},
  };
  const char* missing = "";
  // A seqlock_t begins with its sequence; with PREEMPT_RT, that was beside the lock for a while.
  std::optional<Btf::Member> sequence = btf.Find("signal_struct", "stats_seqc");
  if (!sequence) sequence = btf.Find("signal_struct", "stats_lock");
  const std::optional<Btf::Member> entity = btf.Find("task_struct", "se");
  if (!sequence || !entity || !FindAll(btf, wanted, &missing) ||
      !FindCounter(btf, "utime", "utime", &places.user) ||
      !FindCounter(btf, "stime", "stime", &places.system)) {
    return std::nullopt;
  }
  places.sequence = sequence->offset;
  places.runtime.in_task += entity->offset;
  const std::optional<Btf::Member> in_signal = btf.Find("signal_struct", "ioac");
  const std::optional<Btf::Member> in_task = btf.Find("task_struct", "ioac");
  uint32_t read, written;
  const Wanted bytes[] = {{"task_io_accounting", "read_bytes", 8, &read},
                          {"task_io_accounting", "write_bytes", 8, &written}};
  if (in_signal && in_task && FindAll(btf, bytes, &missing)) {
    places.io = UsagePlaces::Io{{in_signal->offset + read, in_task->offset + read},
                                {in_signal->offset + written, in_task->offset + written}};
  }
  return places;
}

std::optional<PidPlaces> FindPid(const Btf& btf, const char** missing) {
  PidPlaces places = {};
  const Wanted wanted[] = {
      {"pid", "level", 4, &places.level},
      {"upid", "nr", 4, &places.number},
      {"upid", "ns", kPointer, &places.name_space},
  };
  if (!FindAll(btf, wanted, missing)) return std::nullopt;
  const std::optional<Btf::Member> numbers = btf.Find("pid", "numbers");
  if (!numbers) {
    *missing = "numbers";
    return std::nullopt;
  }
  places.numbers = numbers->offset;
  // A number and an aligned pointer.
  places.number_bytes = 2 * kPointer;
  return places;
}

// Where the kernel keeps the number of the system call that a task is in.
std::optional<SignalLayout::Number> FindSyscallNumber(const Btf& btf) {
#if defined(__x86_64__)
  const std::optional<Btf::Member> number = btf.Find("pt_regs", "orig_ax");
#elif defined(__aarch64__)
  const std::optional<Btf::Member> number = btf.Find("pt_regs", "syscallno");
#else
  const std::optional<Btf::Member> number;
#endif
  if (!number || (number->size != 8 && number->size != 4)) return std::nullopt;
  return SignalLayout::Number{number->offset, number->size};
}

std::optional<uint32_t> FindInode(const Btf& btf) {
  const std::optional<Btf::Member> inode = btf.Find("pid", "ino");
  if (!inode || inode->size != 8) return std::nullopt;
  return inode->offset;
}

}  // namespace

std::optional<KernelLayout> ResolveKernelLayout(const Btf& btf, const char** missing) {
  KernelLayout layout = {};
  const Wanted wanted[] = {
      {"task_struct", "flags", 4, &layout.task.flags},
      {"task_struct", "exit_state", 4, &layout.task.exit_state},
      {"task_struct", "exit_code", 4, &layout.task.exit_code},
      {"task_struct", "pid", 4, &layout.task.pid},
      {"task_struct", "tgid", 4, &layout.task.tgid},
      {"task_struct", "real_parent", kPointer, &layout.task.real_parent},
      {"task_struct", "group_leader", kPointer, &layout.task.group_leader},
      {"task_struct", "thread_pid", kPointer, &layout.task.thread_pid},
      {"task_struct", "start_boottime", 8, &layout.task.start_boottime},
      {"task_struct", "cred", kPointer, &layout.task.cred},
      {"task_struct", "comm", kNameBytes, &layout.task.comm},
      {"task_struct", "signal", kPointer, &layout.task.signal},
      {"task_struct", "sighand", kPointer, &layout.task.sighand},
      {"signal_struct", "sigcnt", 4, &layout.signal.references},
      {"signal_struct", "nr_threads", 4, &layout.signal.threads},
      {"signal_struct", "live", 4, &layout.signal.live},
      {"signal_struct", "group_exit_code", 4, &layout.signal.group_exit_code},
      {"signal_struct", "flags", 4, &layout.signal.flags},
      {"cred", "euid", 4, &layout.cred.euid},
  };
  if (!FindAll(btf, wanted, missing)) return std::nullopt;
  // The kernel uses it to determine which thread is the last one.
  layout.signal.always_has_code = btf.Find("signal_struct", "quick_threads").has_value();
  layout.pid.inode = FindInode(btf);
  layout.locks_programs = btf.Find("bpf_map", "memory").has_value();
  layout.cgroup = FindCgroup(btf);
  layout.exit_tells_last = ExitTellsLast(btf);
  layout.executable = FindLastExecutable(btf);
  layout.usage = FindUsage(btf);
  layout.arguments = FindArguments(btf);
  return layout;
}

std::optional<SignalLayout> ResolveSignalLayout(const Btf& btf, const char** missing) {
  constexpr uint32_t kSignals = 64;
  constexpr uint32_t kSiginfoFields = 32;
  SignalLayout layout = {};
  const Wanted wanted[] = {
      {"task_struct", "flags", 4, &layout.task.flags},
      {"task_struct", "pid", 4, &layout.task.pid},
      {"task_struct", "tgid", 4, &layout.task.tgid},
      {"task_struct", "real_parent", kPointer, &layout.task.real_parent},
      {"task_struct", "group_leader", kPointer, &layout.task.group_leader},
      {"task_struct", "thread_pid", kPointer, &layout.task.thread_pid},
      {"task_struct", "start_boottime", 8, &layout.task.start_boottime},
      {"task_struct", "cred", kPointer, &layout.task.cred},
      {"task_struct", "comm", kNameBytes, &layout.task.comm},
      {"task_struct", "signal", kPointer, &layout.task.signal},
      {"task_struct", "sighand", kPointer, &layout.task.sighand},
      {"task_struct", "blocked", kSignals / 8, &layout.task.blocked},
      {"task_struct", "real_blocked", kSignals / 8, &layout.task.real_blocked},
      {"task_struct", "stack", kPointer, &layout.task.stack},
      {"task_struct", "mm", kPointer, &layout.task.mm},
      {"task_struct", "ptrace", 4, &layout.task.ptrace},
      {"task_struct", "parent", kPointer, &layout.task.parent},
      {"signal_struct", "group_exit_code", 4, &layout.signal.group_exit_code},
      {"signal_struct", "flags", 4, &layout.signal.flags},
      {"cred", "euid", 4, &layout.cred.euid},
      {"kernel_siginfo", "si_code", 4, &layout.siginfo.code},
      {"kernel_siginfo", "_sifields", kSiginfoFields, &layout.siginfo.fields},
      {"sigaction", "sa_handler", kPointer, &layout.sighand.handler},
  };
  if (!FindAll(btf, wanted, missing)) return std::nullopt;
  const std::optional<Btf::Member> action = btf.Find("sighand_struct", "action");
  const std::optional<Btf::Member> in_action = btf.Find("k_sigaction", "sa");
  const std::optional<uint32_t> parameters = btf.CountParameters("btf_trace_mark_victim");
  if (!action || action->size % kSignals != 0 || !in_action) {
    *missing = "action";
    return std::nullopt;
  }
  if (!parameters) {
    *missing = "mark_victim";
    return std::nullopt;
  }
  const std::optional<PidPlaces> pid_there = FindPid(btf, missing);
  if (!pid_there) return std::nullopt;
  layout.pid_there = *pid_there;
  layout.syscall = FindSyscallNumber(btf);
  layout.sighand.handler_in_action = in_action->offset + layout.sighand.handler;
  layout.sighand.action = action->offset + in_action->offset;
  layout.sighand.action_bytes = action->size / kSignals;
  layout.pid.inode = FindInode(btf);
  // The first parameter is the tracepoint's own.
  layout.victim_is_task = *parameters > 2;

  layout.cgroup = FindCgroup(btf);
  layout.executable = FindExecutable(btf);
  layout.command_line = FindArguments(btf);
  return layout;
}

}  // namespace exitwatch
