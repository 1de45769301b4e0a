// One idea: the program that runs when a signal is generated, step by step.
#include "core/bpf/signal_program.h"

#include <csignal>

#include "core/bpf/signal_record_program.h"

namespace exitwatch {

namespace {

using Asm = BpfAssembler;

// From the kernel's <linux/sched/signal.h>.
constexpr int32_t kGroupExit = 0x00000004;  // SIGNAL_GROUP_EXIT

// From <trace/events/signal.h>: the signal will be delivered. kLoseInfo: without its siginfo,
// because the sender's queue is full (RLIMIT_SIGPENDING).
constexpr int32_t kDelivered = 0;
constexpr int32_t kLoseInfo = 4;

constexpr int32_t kFirstRealTime = 32;

// A siginfo of the same system call is at most this far above our arguments.
constexpr int32_t kLargestFrames = 4096;

template <typename... Signals>
constexpr uint64_t SetOf(Signals... signals) {
  return ((uint64_t{1} << (signals - 1)) | ...);
}

constexpr uint64_t kRealTime = ~((uint64_t{1} << (kFirstRealTime - 1)) - 1);
constexpr uint64_t kRoutine = kRealTime | SetOf(SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
                                                SIGALRM, SIGVTALRM, SIGPROF, SIGIO);

// The kernel dumps core for these by default: they do not kill before a thread takes them.
constexpr uint64_t kCore =
    SetOf(SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS);

// si_code values from <asm-generic/siginfo.h>.
constexpr int32_t kTimer = -2;    // SI_TIMER
constexpr int32_t kSigio = -5;    // SI_SIGIO
constexpr int32_t kLastPoll = 6;  // POLL_HUP; POLL_IN is 1

class SignalProgram : SignalRecordProgram {
 public:
  SignalProgram(const SignalLayout& layout, const SignalTraceMaps& maps)
      : SignalRecordProgram(layout, maps) {}

  std::vector<bpf_insn> Build() {
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
    TellSenderCommandLine();
    return Finish();
  }

 private:
  void LookAtResult() {
    const Asm::Label effective = code_.NewLabel();
    code_.Load(Asm::kDouble, Asm::kR2, kContext, layout_.arguments.result);
    code_.JumpIf32(BPF_JEQ, Asm::kR2, kDelivered, effective);
    code_.JumpIf32(BPF_JNE, Asm::kR2, kLoseInfo, drop_);
    SetFlag(SignalRecord::kInfoLost);
    code_.Bind(effective);
  }

  void LookAtHandler() {
    const Asm::Label unblocked = code_.NewLabel();
    const Asm::Label not_ignored = code_.NewLabel();
    const Asm::Label done = code_.NewLabel();
    constexpr int32_t kIgnore = 1;  // SIG_IGN; 0 is SIG_DFL
    ReadPointer(Asm::kR3, kTask, layout_.task.blocked);
    JumpIfInSet(Asm::kR3, false, unblocked);
    SetFlag(SignalRecord::kBlocked);
    code_.Bind(unblocked);
    if (IsRecorder()) LookAtAwaited();

    ReadPointer(kOther, kTask, layout_.task.sighand);
    LoadSignal(Asm::kR1);
    code_.Compute(BPF_SUB, Asm::kR1, 1);
    code_.Compute(BPF_MUL, Asm::kR1, static_cast<int32_t>(layout_.sighand.action_bytes));
    code_.Compute(BPF_ADD, kOther, Asm::kR1);
    ReadPointer(Asm::kR3, kOther, layout_.sighand.action + layout_.sighand.handler);
    // Ignored signals come this far only if they are blocked, and may thus still matter, or if the
    // process is ptraced.
    code_.JumpIf(BPF_JNE, Asm::kR3, kIgnore, not_ignored);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.Compute(BPF_AND, Asm::kR1, static_cast<int32_t>(SignalRecord::kBlocked));
    code_.JumpIf(BPF_JEQ, Asm::kR1, 0, drop_);
    SetFlag(SignalRecord::kIgnored);
    code_.Jump(done);
    code_.Bind(not_ignored);
    const Asm::Label handled = code_.NewLabel();
    code_.JumpIf(BPF_JNE, Asm::kR3, 0, handled);
    if (IsRecorder()) SetFlag(SignalRecord::kUnhandled);
    code_.Jump(done);
    code_.Bind(handled);
    // A recorder has no room for what a process sends to itself, as hypervisors do all day.
    if (IsRecorder()) DropUnlessBlockedOrFromOther();
    code_.SetDouble(Asm::kR3, kRoutine);
    JumpIfInSet(Asm::kR3, false, done);
    // A blocked signal may be taken after its handler is gone.
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(SignalRecord::kBlocked), done);
    DropUnlessFromOther();
    code_.Bind(done);
  }

  // Without a branch: the verifier would follow all that comes after it twice.
  void LookAtAwaited() {
    static_assert(SignalRecord::kAwaited == 1u << 20);
    ReadPointer(Asm::kR3, kTask, layout_.task.real_blocked);
    LoadSignal(Asm::kR1);
    code_.Compute(BPF_SUB, Asm::kR1, 1);
    code_.Compute(BPF_RSH, Asm::kR3, Asm::kR1);
    code_.Compute(BPF_AND, Asm::kR3, 1);
    code_.Compute(BPF_LSH, Asm::kR3, 20);
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.Compute(BPF_OR, Asm::kR1, Asm::kR3);
    code_.Store(Asm::kWord, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)), Asm::kR1);
  }

  void DropUnlessBlockedOrFromOther() {
    const Asm::Label blocked = code_.NewLabel();
    code_.Load(Asm::kWord, Asm::kR1, Asm::kFrame, RecordField(offsetof(SignalRecord, flags)));
    code_.JumpIf32(BPF_JSET, Asm::kR1, static_cast<int32_t>(SignalRecord::kBlocked), blocked);
    ReadWord(Asm::kR3, kCurrent, layout_.task.tgid);
    code_.Load(Asm::kWord, Asm::kR2, Asm::kFrame, RecordField(offsetof(SignalRecord, pid)));
    code_.JumpIf32(BPF_JEQ, Asm::kR3, Asm::kR2, drop_);
    code_.Bind(blocked);
  }

  // Runtimes catch these all day, from themselves or from the kernel: keep only what another
  // process sends. Since Linux 7.3 kill(2) sends without a siginfo.
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

  // If a signal kills at once and dumps no core, the kernel sets SIGNAL_GROUP_EXIT before the
  // tracepoint.
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

  // Any process may send a siginfo that claims to be a timer's (rt_sigqueueinfo(2)). A siginfo that
  // the sender's system call made is on its kernel stack, above our own arguments; a timer's is
  // not, and an interrupt has its own stack. Jumps to `end`.
  void LookAtStack(Asm::Label end) {
    LoadContextAddress();
    code_.Compute(BPF_SUB, kOther, Asm::kR1);
    code_.JumpIf(BPF_JGT, kOther, kLargestFrames, end);
    JumpIfOffStack(end);
    SetFlag(SignalRecord::kSenderStack);
    code_.Jump(end);
  }

  // Loads the address of our own arguments into r1. Reading the pointer back turns it into a number
  // for the verifier.
  void LoadContextAddress() {
    code_.Store(Asm::kDouble, Asm::kFrame, kContextAt, kContext);
    code_.Move(Asm::kR3, Asm::kFrame);
    Read(kScratch, 8, Asm::kR3, static_cast<uint32_t>(int32_t{kContextAt}));
    code_.Load(Asm::kDouble, Asm::kR1, Asm::kFrame, kScratch);
    code_.Store(Asm::kDouble, Asm::kFrame, kContextAt, Asm::kR1);
  }

  // After LoadContextAddress(): jumps unless our arguments are on the sender's own kernel stack.
  // The registers with which it entered the kernel are at the top of that stack.
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

  // Loads the address of those registers. Clobbers r0 to r5.
  void LoadRegisters(Asm::Register to) {
    code_.Call(Asm::kGetCurrentTaskBtf);
    code_.Move(Asm::kR1, Asm::kR0);
    code_.Call(Asm::kTaskPtRegs);
    code_.Store(Asm::kDouble, Asm::kFrame, kScratch, Asm::kR0);
    code_.Load(Asm::kDouble, to, Asm::kFrame, kScratch);
  }

  // The signal of a file's owner (F_SETOWN, fcntl(2)) comes from the process that makes the file
  // ready, if it does so in a system call. An interrupt does it in the name of any process. An
  // interrupt of user mode runs on the stack of the process it interrupts, which is then in no
  // system call. Since Linux 7.3 kill(2) sends without a siginfo (kernel/signal.c,
  // SYSCALL_DEFINE2(kill)), like the kernel.
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

  // How the sender relates to the process that it signals.
  void LookAtRelation() {
    const Asm::Label other_thread = code_.NewLabel();
    const Asm::Label unptraced = code_.NewLabel();
    code_.JumpIf(BPF_JNE, kCurrent, kTask, other_thread);
    SetFlag(SignalRecord::kToItself);
    code_.Bind(other_thread);
    ReadWord(Asm::kR1, kTask, layout_.task.ptrace);
    code_.JumpIf32(BPF_JEQ, Asm::kR1, 0, unptraced);
    ReadPointer(kOther, kTask, layout_.task.parent);
    ReadPointer(kOther, kOther, layout_.task.group_leader);
    ReadPointer(Asm::kR1, kCurrent, layout_.task.group_leader);
    code_.JumpIf(BPF_JNE, Asm::kR1, kOther, unptraced);
    SetFlag(SignalRecord::kSenderPtraces);
    code_.Bind(unptraced);
  }
};

}  // namespace

std::vector<bpf_insn> BuildSignalProgram(const SignalLayout& layout, const SignalTraceMaps& maps) {
  return SignalProgram(layout, maps).Build();
}

}  // namespace exitwatch
