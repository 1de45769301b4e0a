#include "core/signal_program.h"

#include <csignal>

#include "core/kernel_program.h"

namespace exitwatch {

namespace {

using Asm = BpfAssembler;

// Of the kernel's <linux/sched/signal.h> and <linux/signal.h>.
constexpr int32_t kGroupExit = 0x00000004;   // SIGNAL_GROUP_EXIT
constexpr int32_t kUnkillable = 0x00000040;  // SIGNAL_UNKILLABLE
constexpr int32_t kPrivileged = 1;           // SEND_SIG_PRIV

// Of <trace/events/signal.h>: the signal is on its way, and so it is where only its siginfo was
// lost, for want of room in the sender's queue (RLIMIT_SIGPENDING).
constexpr int32_t kDelivered = 0;
constexpr int32_t kLoseInfo = 4;

// The arguments of the other raw tracepoints: signal_deliver, and mark_victim.
constexpr int16_t kTakenSignal = 0;
constexpr int16_t kTakenInfo = 8;
constexpr int16_t kTakenAction = 16;
constexpr int16_t kVictim = 0;

constexpr int32_t kLastSignal = 64;
constexpr int32_t kFirstRealTime = 32;

// How far above our arguments a siginfo of the same system call stands at most.
constexpr int32_t kLargestFrames = 4096;

template <typename... Signals>
constexpr uint64_t SetOf(Signals... signals) {
  return ((uint64_t{1} << (signals - 1)) | ...);
}

constexpr uint64_t kHarmless =
    SetOf(SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU);
constexpr uint64_t kRealTime = ~((uint64_t{1} << (kFirstRealTime - 1)) - 1);
constexpr uint64_t kRoutine = kRealTime | SetOf(SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
                                                SIGALRM, SIGVTALRM, SIGPROF, SIGIO);

// The kernel dumps core for these by default: they do not kill before a thread has taken them.
constexpr uint64_t kCore =
    SetOf(SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS);

// si_code of <asm-generic/siginfo.h>.
constexpr int32_t kTimer = -2;    // SI_TIMER
constexpr int32_t kSigio = -5;    // SI_SIGIO
constexpr int32_t kLastPoll = 6;  // POLL_HUP; POLL_IN is 1

// The stack, below the place to read into: the tracepoint's arguments are where, two pointers, the
// record.
constexpr int16_t kContextAt = -16;
constexpr int16_t kSlotsAt = -32;
constexpr int16_t kRecord = kSlotsAt - static_cast<int16_t>(sizeof(SignalRecord));

constexpr int16_t RecordField(size_t offset) {
  return static_cast<int16_t>(kRecord + static_cast<int16_t>(offset));
}

// Registers that calls leave alone, with one meaning each through the whole program.
constexpr Asm::Register kContext = Asm::kR6;
constexpr Asm::Register kTask = Asm::kR7;     // of who gets the signal
constexpr Asm::Register kCurrent = Asm::kR8;  // of who sends it
constexpr Asm::Register kOther = Asm::kR9;    // whatever is being followed

class Program : KernelProgram {
 public:
  Program(const SignalLayout& layout, const SignalTraceMaps& maps) : layout_(layout), maps_(maps) {}

  std::vector<bpf_insn> BuildSignal() {
    Begin();
    LookAtSignal(layout_.arguments.signal);
    LookAtResult();
    code_.Load(Asm::kDouble, kTask, kContext, layout_.arguments.task);
    code_.Call(Asm::kGetCurrentTask);
    code_.Move(kCurrent, Asm::kR0);
    if (layout_.is_direction_inverted) {
      code_.Move(kCurrent, kTask);
      code_.Move(kTask, Asm::kR0);
    }
    ReadToRecord(offsetof(SignalRecord, pid), 4, kTask, layout_.task.tgid);
    LookAtWatched();
    LookAtTarget();
    LookAtHandler();
    LookAtDeath();
    LookAtInfo();
    LookAtSyscall();
    LookAtRelation();
    LookAtSender();
    ReadPointer(kOther, kCurrent, layout_.task.group_leader);
    ReadPointer(kOther, kOther, layout_.task.thread_pid);
    LookAtPidThere();
    LookAtAncestors();
    TellSenderCgroup();
    return Finish();
  }

  std::vector<bpf_insn> BuildTaken() {
    Begin();
    LookAtSignal(kTakenSignal);
    LookAtAction();
    code_.Call(Asm::kGetCurrentTask);
    code_.Move(kTask, Asm::kR0);
    ReadToRecord(offsetof(SignalRecord, pid), 4, kTask, layout_.task.tgid);
    LookAtWatched();
    LookAtUnkillable();
    SetFlag(SignalRecord::kTaken);
    LookAtTarget();
    code_.Load(Asm::kDouble, kOther, kContext, kTakenInfo);
    ReadInfo();
    ReadPointer(kCurrent, kTask, layout_.task.parent);
    LookAtSender();
    ReadPointer(kOther, kCurrent, layout_.task.thread_pid);
    LookAtPidThere();
    LookAtAncestors();
    TellSenderCgroup();
    return Finish();
  }

  std::vector<bpf_insn> BuildOom() {
    Begin();
    ClearRecord();
    SetFlag(SignalRecord::kOom);
    code_.Load(Asm::kDouble, kTask, kContext, kVictim);
    code_.Call(Asm::kGetCurrentTask);
    code_.Move(kCurrent, Asm::kR0);
    ReadSenderIds();
    if (layout_.victim_is_task) {
      ReadToRecord(offsetof(SignalRecord, pid), 4, kTask, layout_.task.tgid);
      LookAtTarget();
    } else {
      code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, pid)), kTask);
    }
    return Finish();
  }

 private:
  void Begin() {
    drop_ = code_.NewLabel();
    code_.Move(kContext, Asm::kR1);
  }

  std::vector<bpf_insn> Finish() {
    code_.Call(Asm::kKtimeGetNs);
    code_.Store(Asm::kDouble, Asm::kFrame, RecordField(offsetof(SignalRecord, time_ns)), Asm::kR0);
    ChooseWakeup();
    WriteRecord(maps_.ring, kRecord, sizeof(SignalRecord), maps_.state,
                offsetof(SignalTraceState, lost));
    code_.Bind(drop_);
    code_.Set(Asm::kR0, 0);
    code_.Exit();
    return code_.Finish();
  }

  void ReadToRecord(size_t field, int32_t size, Asm::Register base, uint32_t offset) {
    Read(RecordField(field), size, base, offset);
  }

  void SetFlag(uint32_t flag) {
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.Compute(BPF_OR, Asm::kR1, static_cast<int32_t>(flag));
    code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)), Asm::kR1);
  }

  void LoadSignal(Asm::Register to) {
    code_.Load(Asm::kWord, to, Asm::kFrame, RecordField(offsetof(SignalRecord, signal)));
  }

  // Goes to `to` if the signal's bit in `set` is `is_set`. Takes r1 and r2.
  void JumpIfInSet(Asm::Register set, bool is_set, Asm::Label to) {
    LoadSignal(Asm::kR1);
    code_.Compute(BPF_SUB, Asm::kR1, 1);
    code_.Move(Asm::kR2, set);
    code_.Compute(BPF_RSH, Asm::kR2, Asm::kR1);
    code_.Compute(BPF_AND, Asm::kR2, 1);
    code_.JumpIf(is_set ? BPF_JNE : BPF_JEQ, Asm::kR2, 0, to);
  }

  // Most signals of a host tell parents of ends (SIGCHLD): these go no further than here.
  void LookAtSignal(int16_t argument) {
    code_.Load(Asm::kDouble, Asm::kR1, kContext, argument);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, SIGCHLD, drop_);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, drop_);
    code_.JumpIf32(BPF_JGT, Asm::kR1, kLastSignal, drop_);
    ClearRecord();
    code_.Load(Asm::kDouble, Asm::kR1, kContext, argument);
    code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, signal)), Asm::kR1);
    code_.SetDouble(Asm::kR3, kHarmless);
    JumpIfInSet(Asm::kR3, true, drop_);
  }

  // Where the verifier knows which flags are set, it follows each combination of them by itself.
  void ClearRecord() {
    Clear(kRecord, sizeof(SignalRecord));
    code_.SetMapValue(Asm::kR1, maps_.state, offsetof(SignalTraceState, zero));
    code_.Load(Asm::kWord, Asm::kR1, Asm::kR1, 0);
    code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)), Asm::kR1);
  }

  void LookAtResult() {
    const Asm::Label effective = code_.NewLabel();
    code_.Load(Asm::kDouble, Asm::kR2, kContext, layout_.arguments.result);
    code_.JumpIf32(BPF_JEQ, Asm::kR2, kDelivered, effective);
    code_.JumpIf32(BPF_JNE, Asm::kR2, kLoseInfo, drop_);
    SetFlag(SignalRecord::kInfoLost);
    code_.Bind(effective);
  }

  // What is taken without a handler ends the process; and a thread of one that is dying anyhow
  // takes a SIGKILL without a siginfo, which nobody has sent.
  void LookAtAction() {
    code_.Load(Asm::kDouble, kOther, kContext, kTakenInfo);
    code_.JumpIf(BPF_JLE, kOther, kPrivileged, drop_);
    code_.Load(Asm::kDouble, kOther, kContext, kTakenAction);
    ReadPointer(Asm::kR3, kOther, layout_.sighand.handler_in_action);
    code_.JumpIf(BPF_JNE, Asm::kR3, 0, drop_);
  }

  // The first process of a pid namespace lives on.
  void LookAtUnkillable() {
    const Asm::Label kills = code_.NewLabel();
    const Asm::Label unkillable = code_.NewLabel();
    LoadSignal(Asm::kR1);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, SIGKILL, kills);
    ReadPointer(kOther, kTask, layout_.task.signal);
    ReadWord(Asm::kR1, kOther, layout_.signal.flags);
    code_.JumpIf32(BPF_JSET, Asm::kR1, kUnkillable, unkillable);
    code_.Jump(kills);
    code_.Bind(unkillable);
    code_.Jump(drop_);
    code_.Bind(kills);
  }

  void LookAtWatched() {
    if (maps_.watched < 0) return;
    RequireWatched(maps_.watched, RecordField(offsetof(SignalRecord, pid)), drop_);
  }

  void LookAtTarget() {
    ReadToRecord(offsetof(SignalRecord, thread), 4, kTask, layout_.task.pid);
    ReadToRecord(offsetof(SignalRecord, memory), 8, kTask, layout_.task.mm);
    const Asm::Label untraced = code_.NewLabel();
    ReadWord(Asm::kR1, kTask, layout_.task.ptrace);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, untraced);
    SetFlag(SignalRecord::kTraced);
    code_.Bind(untraced);
    ReadPointer(kOther, kTask, layout_.task.group_leader);
    ReadToRecord(offsetof(SignalRecord, start_ns), 8, kOther, layout_.task.start_boottime);
    ReadToRecord(offsetof(SignalRecord, name), kNameBytes, kOther, layout_.task.comm);
    if (layout_.pid.inode) {
      ReadPointer(kOther, kOther, layout_.task.thread_pid);
      ReadToRecord(offsetof(SignalRecord, inode), 8, kOther, *layout_.pid.inode);
    }
  }

  void LookAtHandler() {
    const Asm::Label unblocked = code_.NewLabel();
    const Asm::Label not_ignored = code_.NewLabel();
    const Asm::Label told = code_.NewLabel();
    constexpr int32_t kIgnore = 1;  // SIG_IGN; 0 is SIG_DFL
    ReadPointer(Asm::kR3, kTask, layout_.task.blocked);
    JumpIfInSet(Asm::kR3, false, unblocked);
    SetFlag(SignalRecord::kBlocked);
    code_.Bind(unblocked);

    ReadPointer(kOther, kTask, layout_.task.sighand);
    LoadSignal(Asm::kR1);
    code_.Compute(BPF_SUB, Asm::kR1, 1);
    code_.Compute(BPF_MUL, Asm::kR1, static_cast<int32_t>(layout_.sighand.action_bytes));
    code_.Compute(BPF_ADD, kOther, Asm::kR1);
    ReadPointer(Asm::kR3, kOther, layout_.sighand.action + layout_.sighand.handler);
    // Ignored signals come this far only if they are blocked, so that they may still be meant, or
    // if there is a tracer.
    code_.JumpIf(BPF_JNE, Asm::kR3, kIgnore, not_ignored);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.Compute(BPF_AND, Asm::kR1, static_cast<int32_t>(SignalRecord::kBlocked));
    code_.JumpIf(BPF_JEQ, Asm::kR1, 0, drop_);
    SetFlag(SignalRecord::kIgnored);
    code_.Jump(told);
    code_.Bind(not_ignored);
    code_.JumpIf(BPF_JEQ, Asm::kR3, 0, told);
    code_.SetDouble(Asm::kR3, kRoutine);
    JumpIfInSet(Asm::kR3, false, told);
    // One that is blocked may be taken when it has no handler any more.
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(SignalRecord::kBlocked), told);
    DropUnlessFromOther();
    code_.Bind(told);
  }

  // What runtimes catch all day comes from themselves, or from the kernel; what another process
  // sends is something else. Since Linux 7.3 kill(2) sends without a siginfo.
  void DropUnlessFromOther() {
    const Asm::Label by_process = code_.NewLabel();
    code_.Load(Asm::kDouble, kOther, kContext, layout_.arguments.info);
    code_.JumpIf(BPF_JEQ, kOther, layout_.no_info, by_process);
    code_.JumpIf(BPF_JEQ, kOther, kPrivileged, drop_);
    ReadWord(Asm::kR1, kOther, layout_.siginfo.code);
    code_.JumpIf32(BPF_JSGT, Asm::kR1, 0, drop_);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, kTimer, drop_);
    code_.Bind(by_process);
    ReadWord(Asm::kR3, kCurrent, layout_.task.tgid);
    code_.Load(Asm::kWord, Asm::kR2, Asm::kFrame, RecordField(offsetof(SignalRecord, pid)));
    code_.JumpIf32(BPF_JEQ, Asm::kR3, Asm::kR2, drop_);
  }

  // A signal that kills at once, and dumps no core, has set this when it is told here.
  void LookAtDeath() {
    const Asm::Label dying = code_.NewLabel();
    const Asm::Label alive = code_.NewLabel();
    code_.SetDouble(Asm::kR3, kCore);
    JumpIfInSet(Asm::kR3, true, alive);
    ReadPointer(kOther, kTask, layout_.task.signal);
    ReadWord(Asm::kR1, kOther, layout_.signal.flags);
    code_.JumpIf32(BPF_JSET, Asm::kR1, kGroupExit, dying);
    code_.Jump(alive);
    code_.Bind(dying);
    ReadWord(Asm::kR1, kOther, layout_.signal.group_exit_code);
    LoadSignal(Asm::kR2);
    code_.JumpIf32(BPF_JNE, Asm::kR1, Asm::kR2, alive);
    SetFlag(SignalRecord::kDeadly);
    code_.Bind(alive);
  }

  void LookAtInfo() {
    const Asm::Label no_info = code_.NewLabel();
    const Asm::Label privileged = code_.NewLabel();
    const Asm::Label known = code_.NewLabel();
    const Asm::Label not_group = code_.NewLabel();
    code_.Load(Asm::kDouble, Asm::kR1, kContext, layout_.arguments.group);
    code_.JumpIf32(layout_.is_group_inverted ? BPF_JNE : BPF_JEQ, Asm::kR1, 0, not_group);
    SetFlag(SignalRecord::kGroup);
    code_.Bind(not_group);

    code_.Load(Asm::kDouble, kOther, kContext, layout_.arguments.info);
    code_.JumpIf(BPF_JEQ, kOther, layout_.no_info, no_info);
    code_.JumpIf(BPF_JEQ, kOther, kPrivileged, privileged);
    ReadInfo();
    LookAtStack(known);
    code_.Bind(no_info);
    SetFlag(SignalRecord::kNoInfo);
    code_.Jump(known);
    code_.Bind(privileged);
    SetFlag(SignalRecord::kPrivileged);
    code_.Bind(known);
  }

  // Of the siginfo in kOther.
  void ReadInfo() {
    ReadToRecord(offsetof(SignalRecord, code), 4, kOther, layout_.siginfo.code);
    ReadToRecord(offsetof(SignalRecord, info), sizeof(SignalRecord::info), kOther,
                 layout_.siginfo.fields);
  }

  // Anybody may give a signal any siginfo that says it is a timer's (rt_sigqueueinfo(2)). What a
  // system call of the sender made is on its kernel stack, above our own arguments; a timer's is
  // not, and an interrupt has a stack of its own. Goes to `end`.
  void LookAtStack(Asm::Label end) {
    LoadContextAddress();
    code_.Compute(BPF_SUB, kOther, Asm::kR1);
    code_.JumpIf(BPF_JGT, kOther, kLargestFrames, end);
    JumpIfOffStack(end);
    SetFlag(SignalRecord::kSenderStack);
    code_.Jump(end);
  }

  // To r1: where our own arguments are. A pointer becomes a number by being read.
  void LoadContextAddress() {
    code_.Store(Asm::kDouble, Asm::kFrame, kContextAt, kContext);
    code_.Move(Asm::kR3, Asm::kFrame);
    Read(kScratch, 8, Asm::kR3, static_cast<uint32_t>(int32_t{kContextAt}));
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, kScratch);
    code_.Store(Asm::kDouble, Asm::kFrame, kContextAt, Asm::kR1);
  }

  // After LoadContextAddress(): unless our arguments are on the sender's own kernel stack. The
  // registers that it came into the kernel with are at the top of that.
  void JumpIfOffStack(Asm::Label to) {
    if (layout_.syscall) {
      LoadRegisters(kOther);
      code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, kContextAt);
      code_.JumpIf(BPF_JGT, Asm::kR1, kOther, to);
      ReadPointer(kOther, kCurrent, layout_.task.stack);
      code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, kContextAt);
      code_.JumpIf(BPF_JLT, Asm::kR1, kOther, to);
      return;
    }
    ReadPointer(kOther, kCurrent, layout_.task.stack);
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, kContextAt);
    code_.Compute(BPF_SUB, Asm::kR1, kOther);
    code_.JumpIf(BPF_JGT, Asm::kR1, static_cast<int32_t>(layout_.stack_bytes), to);
  }

  // Where they are. Takes what calls take.
  void LoadRegisters(Asm::Register to) {
    code_.Call(Asm::kGetCurrentTaskBtf);
    code_.Move(Asm::kR1, Asm::kR0);
    code_.Call(Asm::kTaskPtRegs);
    code_.Store(Asm::kDouble, Asm::kFrame, kScratch, Asm::kR0);
    code_.Load(Asm::kDouble, to, Asm::kFrame, kScratch);
  }

  // Who makes a file ready is who its owner's signal (F_SETOWN of fcntl(2)) comes from, if that is
  // done by a system call: an interrupt does it in anybody's name. An interrupt of user mode runs
  // on the stack of whom it interrupts; that is in no system call then. Since Linux 7.3 kill(2)
  // sends without a siginfo (kernel/signal.c, SYSCALL_DEFINE2(kill)), as the kernel does.
  void LookAtSyscall() {
    if (!layout_.syscall) {
      SetFlag(SignalRecord::kMayBeInSyscall);
      return;
    }
    const Asm::Label look = code_.NewLabel();
    const Asm::Label done = code_.NewLabel();
    const Asm::Label with_info = code_.NewLabel();
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(SignalRecord::kNoInfo), look);
    code_.Compute(BPF_AND, Asm::kR1, static_cast<int32_t>(SignalRecord::kPrivileged));
    code_.JumpIf(BPF_JEQ, Asm::kR1, 0, with_info);
    LoadSignal(Asm::kR1);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, SIGIO, look);
    code_.Jump(done);
    code_.Bind(with_info);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, code)));
    code_.JumpIf32(BPF_JEQ, Asm::kR1, kSigio, look);
    code_.JumpIf32(BPF_JSLE, Asm::kR1, 0, done);
    code_.JumpIf32(BPF_JSGT, Asm::kR1, kLastPoll, done);
    code_.Bind(look);
    LoadContextAddress();
    JumpIfOffStack(done);
    LoadRegisters(kOther);
    const auto [offset, bytes] = *layout_.syscall;
    if (bytes == 8) {
      ReadPointer(Asm::kR1, kOther, offset);
      code_.JumpIf(BPF_JSLT, Asm::kR1, 0, done);
    } else {
      ReadWord(Asm::kR1, kOther, offset);
      code_.JumpIf32(BPF_JSLT, Asm::kR1, 0, done);
    }
    SetFlag(SignalRecord::kInSyscall);
    code_.Bind(done);
  }

  // What the sender has to do with whom it sends to.
  void LookAtRelation() {
    const Asm::Label other_thread = code_.NewLabel();
    const Asm::Label untraced = code_.NewLabel();
    code_.JumpIf(BPF_JNE, kCurrent, kTask, other_thread);
    SetFlag(SignalRecord::kToItself);
    code_.Bind(other_thread);
    ReadWord(Asm::kR1, kTask, layout_.task.ptrace);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, untraced);
    ReadPointer(kOther, kTask, layout_.task.parent);
    ReadPointer(kOther, kOther, layout_.task.group_leader);
    ReadPointer(Asm::kR1, kCurrent, layout_.task.group_leader);
    code_.JumpIf(BPF_JNE, Asm::kR1, kOther, untraced);
    SetFlag(SignalRecord::kSenderTraces);
    code_.Bind(untraced);
  }

  void ReadSenderIds() {
    ReadWord(Asm::kR3, kCurrent, layout_.task.flags);
    SetFlagIf(Asm::kR3, layout_.task_exiting, SignalRecord::kSenderExiting);
    SetFlagIf(Asm::kR3, layout_.task_kernel_thread, SignalRecord::kSenderKernel);
    ReadToRecord(offsetof(SignalRecord, sender_pid), 4, kCurrent, layout_.task.tgid);
    ReadToRecord(offsetof(SignalRecord, sender_thread), 4, kCurrent, layout_.task.pid);
    ReadPointer(kOther, kCurrent, layout_.task.group_leader);
    ReadToRecord(offsetof(SignalRecord, sender_start), 8, kOther, layout_.task.start_boottime);
  }

  void LookAtSender() {
    ReadSenderIds();
    ReadToRecord(offsetof(SignalRecord, sender_name), kNameBytes, kOther, layout_.task.comm);
    ReadPointer(kOther, kCurrent, layout_.task.cred);
    ReadToRecord(offsetof(SignalRecord, sender_uid), 4, kOther, layout_.cred.euid);
    if (layout_.cgroup) {
      ReadCgroup(*layout_.cgroup, kCurrent, kOther, RecordField(offsetof(SignalRecord, cgroup)));
    }
  }

  // What the one with this struct pid, in kOther, is called in the process's pid namespace: it has
  // a number for its own namespace, and for each of those above.
  void LookAtPidThere() {
    constexpr int16_t kOtherAt = kSlotsAt;
    constexpr int16_t kSpaceAt = kSlotsAt + 8;
    constexpr int16_t kLevelAt = kContextAt;
    const PidPlaces& places = layout_.pid_there;
    const auto go_to_number = [&] {
      code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, kLevelAt);
      code_.Compute(BPF_MUL, Asm::kR1, static_cast<int32_t>(places.number_bytes));
      code_.Compute(BPF_ADD, Asm::kR1, static_cast<int32_t>(places.numbers));
      code_.Compute(BPF_ADD, kOther, Asm::kR1);
    };
    const Asm::Label unseen = code_.NewLabel();
    code_.JumpIf(BPF_JEQ, kOther, 0, unseen);
    code_.Store(Asm::kDouble, Asm::kFrame, kOtherAt, kOther);
    ReadPointer(kOther, kTask, layout_.task.thread_pid);
    code_.JumpIf(BPF_JEQ, kOther, 0, unseen);
    ReadWord(Asm::kR1, kOther, places.level);
    code_.Store(Asm::kWord, Asm::kFrame, kLevelAt, Asm::kR1);
    go_to_number();
    ReadPointer(Asm::kR1, kOther, places.name_space);
    code_.Store(Asm::kDouble, Asm::kFrame, kSpaceAt, Asm::kR1);

    code_.Load(Asm::kDouble, kOther, Asm::kFrame, kOtherAt);
    ReadWord(Asm::kR1, kOther, places.level);
    code_.Load(Asm::kWord, Asm::kR2, Asm::kFrame, kLevelAt);
    code_.JumpIf32(BPF_JLT, Asm::kR1, Asm::kR2, unseen);
    go_to_number();
    ReadPointer(Asm::kR1, kOther, places.name_space);
    code_.Load(Asm::kDouble, Asm::kR2, Asm::kFrame, kSpaceAt);
    code_.JumpIf(BPF_JNE, Asm::kR1, Asm::kR2, unseen);
    ReadToRecord(offsetof(SignalRecord, sender_pid_there), 4, kOther, places.number);
    code_.Bind(unseen);
  }

  // `from` is left alone.
  void SetFlagIf(Asm::Register from, int32_t bit, uint32_t flag) {
    const Asm::Label set = code_.NewLabel();
    const Asm::Label done = code_.NewLabel();
    code_.JumpIf32(BPF_JSET, from, bit, set);
    code_.Jump(done);
    code_.Bind(set);
    SetFlag(flag);
    code_.Bind(done);
  }

  void TellSenderCgroup() {
    if (!layout_.cgroup) return;
    TellCgroup(*layout_.cgroup, kCurrent, kOther, RecordField(offsetof(SignalRecord, cgroup)),
               maps_.cgroups, maps_.ring, kSlotsAt);
  }

  // From the sender's first thread up to init.
  void LookAtAncestors() {
    const Asm::Label none = code_.NewLabel();
    ReadPointer(kOther, kCurrent, layout_.task.group_leader);
    for (size_t i = 0; i < kAncestors; i++) {
      const size_t ancestor = offsetof(SignalRecord, ancestors) + i * sizeof(Ancestor);
      ReadPointer(kOther, kOther, layout_.task.real_parent);
      ReadPointer(kOther, kOther, layout_.task.group_leader);
      ReadToRecord(ancestor + offsetof(Ancestor, pid), 4, kOther, layout_.task.tgid);
      code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(ancestor));
      code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, none);
      ReadToRecord(ancestor + offsetof(Ancestor, name), kNameBytes, kOther, layout_.task.comm);
    }
    code_.Bind(none);
  }

  // To r4: nobody has to read what comes before it is asked for, unless somebody listens, or the
  // buffer is about to be full.
  void ChooseWakeup() {
    const Asm::Label eager = code_.NewLabel();
    const Asm::Label chosen = code_.NewLabel();
    constexpr int32_t kAvailableData = 0;  // BPF_RB_AVAIL_DATA
    code_.SetMapValue(Asm::kR1, maps_.state, offsetof(SignalTraceState, eager));
    code_.Load(Asm::kWord, Asm::kR2, Asm::kR1, 0);
    code_.JumpIf32(BPF_JNE, Asm::kR2, 0, eager);
    code_.SetMap(Asm::kR1, maps_.ring);
    code_.Set(Asm::kR2, kAvailableData);
    code_.Call(Asm::kRingbufQuery);
    code_.Set(Asm::kR4, kForceWakeup);
    code_.JumpIf(BPF_JGT, Asm::kR0, static_cast<int32_t>(maps_.ring_bytes / 2), chosen);
    code_.Set(Asm::kR4, kNoWakeup);
    code_.Jump(chosen);
    code_.Bind(eager);
    code_.Set(Asm::kR4, 0);  // wakes whoever has read all that came before
    code_.Bind(chosen);
  }

  const SignalLayout& layout_;
  const SignalTraceMaps& maps_;
  Asm::Label drop_ = {0};
};

}  // namespace

std::vector<bpf_insn> BuildSignalProgram(const SignalLayout& layout, const SignalTraceMaps& maps) {
  return Program(layout, maps).BuildSignal();
}

std::vector<bpf_insn> BuildTakenProgram(const SignalLayout& layout, const SignalTraceMaps& maps) {
  return Program(layout, maps).BuildTaken();
}

std::vector<bpf_insn> BuildOomProgram(const SignalLayout& layout, const SignalTraceMaps& maps) {
  return Program(layout, maps).BuildOom();
}

}  // namespace exitwatch
