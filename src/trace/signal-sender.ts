import type { LikelyClient, SignalSender } from '../events/signal-event.js';
import { type SignalName, signalName, signalNumber } from '../events/wait-status.js';
import { SignalFlag } from '../native/abi.js';
import type { TracedSignal } from '../native/signal-records.js';
import { whereaboutsOf } from '../where/whereabouts.js';

import type { Agent } from './likely-clients.js';
import { onBehalfReason } from './on-behalf.js';
import { SI_SIGIO, SI_TIMER, SI_TKILL, SI_USER } from './siginfo.js';

const numbers = (...names: SignalName[]) => new Set(names.map(signalNumber));

/** Signals that the kernel sends to a thread for its own faults (force_sig_fault and similar). */
const FAULTS = numbers('SIGSEGV', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGTRAP', 'SIGSYS');

/**
 * Signals that the kernel itself sends only for interval timers (kernel/time/itimer.c,
 * posix-cpu-timers.c).
 */
const TIMERS = numbers('SIGALRM', 'SIGVTALRM', 'SIGPROF');

const SIGKILL = signalNumber('SIGKILL');
const SIGIO = signalNumber('SIGIO');

/**
 * `si_band` by `si_code`, from POLL_IN to POLL_HUP (band_table of fs/fcntl.c). Other senders in the
 * kernel use the same codes with other values.
 */
const BANDS = [0x41, 0x304, 0x441, 0x8, 0x82, 0x18];

/**
 * Whether either a system call or an interrupt may have sent it. Before Linux 5.15 a BPF program
 * cannot find out which (bpf_task_pt_regs(), kernel/trace/bpf_trace.c).
 */
export function isAmbiguous(signal: TracedSignal): boolean {
  const has = (flag: SignalFlag) => (signal.flags & flag) !== 0;
  if (!has(SignalFlag.mayBeInSyscall) || has(SignalFlag.taken)) return false;
  const mayBeKill = has(SignalFlag.noInfo) && has(SignalFlag.group);
  return (
    isOfFile(signal) || (mayBeKill && !has(SignalFlag.senderExiting | SignalFlag.senderKernel))
  );
}

/** How a signal was sent, judged by what the kernel knew about it. */
export function originOf(signal: TracedSignal): SignalSender['origin'] {
  const has = (flag: SignalFlag) => (signal.flags & flag) !== 0;
  // If nothing sent a signal that was taken, a debugger injected it.
  if (has(SignalFlag.taken)) return 'ptrace';
  if (has(SignalFlag.inSyscall) && isOfFile(signal)) return 'sigio';
  if (has(SignalFlag.privileged)) return TIMERS.has(signal.signal) ? 'timer' : 'kernel';
  if (has(SignalFlag.noInfo)) return originOnBehalf(signal);
  // Any process can forge SI_TIMER, but only with a system call that builds the siginfo. Otherwise
  // the timer is real, and the "sender" only happened to run when it expired.
  if (signal.code === SI_TIMER && !has(SignalFlag.senderStack)) return 'timer';
  if (has(SignalFlag.senderKernel)) return 'kernel';
  if (signal.code === SI_USER) return 'kill';
  if (signal.code === SI_TKILL) return 'tgkill';
  if (signal.code < 0) return has(SignalFlag.senderStack) ? 'sigqueue' : 'kernel';
  return has(SignalFlag.toItself) && FAULTS.has(signal.signal) ? 'fault' : 'kernel';
}

/**
 * Whether it looks like a signal from the kernel to a file's owner, caused by a process (F_SETOWN
 * of fcntl(2)).
 */
function isOfFile({ signal, flags, code, info }: TracedSignal): boolean {
  const has = (flag: SignalFlag) => (flags & flag) !== 0;
  const { senderKernel, senderExiting, noInfo } = SignalFlag;
  if (has(senderKernel | senderExiting | noInfo)) return false;
  if (has(SignalFlag.privileged)) return signal === SIGIO;
  if (code === SI_SIGIO) return has(SignalFlag.senderStack);
  return !FAULTS.has(signal) && BANDS[code - 1] === info[0];
}

/** The origin of a signal that the kernel sends without a siginfo, on behalf of a process. */
function originOnBehalf(signal: TracedSignal): SignalSender['origin'] {
  const has = (flag: SignalFlag) => (signal.flags & flag) !== 0;
  if (has(SignalFlag.senderKernel)) return 'kernel';
  if (has(SignalFlag.group)) {
    if (has(SignalFlag.senderExiting)) return 'parent-death';
    // kill(2) since Linux 7.3 (kernel/signal.c, SYSCALL_DEFINE2(kill)). Nothing else in the kernel
    // signals a whole process like this.
    return has(SignalFlag.inSyscall) ? 'kill' : 'kernel';
  }
  // SIGPIPE and SIGXFSZ look like this: the kernel sends them to the writer.
  if (signal.senderPid === signal.pid || has(SignalFlag.senderExiting)) return 'kernel';
  if (signal.signal !== SIGKILL) return 'kernel';
  return has(SignalFlag.senderPtraces) ? 'ptrace' : 'cgroup-kill';
}

/** What others know about a sender. */
export interface SenderFacts {
  /** The path of the cgroup with this id; `null` if unknown. */
  pathOf: (cgroupId: number) => string | null;
  /** The sender's arguments. */
  commandLine: readonly string[] | null;
  /** What may have asked it; `null`: nobody can look. */
  clientsOf: (agent: Agent) => readonly LikelyClient[] | null;
}

export function senderOf(signal: TracedSignal, facts: SenderFacts): SignalSender {
  const name = signalName(signal.signal);
  if (name === null) throw new RangeError(`unknown signal number ${signal.signal}`);
  const sentAt = new Date(signal.sentAtMs);
  const origin = originOf(signal);
  switch (origin) {
    case 'kernel':
    case 'fault':
    case 'timer':
      return { signal: name, sentAt, origin, pid: null };
    default:
      return processOf(signal, { name, sentAt, origin }, facts);
  }
}

/** When the sender started; `null`: that is not known. */
function startOf({ senderStart, timeNs, sentAtMs }: TracedSignal): Date | null {
  return senderStart === 0 ? null : new Date(senderStart / 1e3 + sentAtMs - timeNs / 1e6);
}

/** A process as a sender. */
function processOf(
  signal: TracedSignal,
  found: {
    name: SignalName;
    sentAt: Date;
    origin: Exclude<SignalSender['origin'], 'kernel' | 'fault' | 'timer'>;
  },
  { pathOf, commandLine, clientsOf }: SenderFacts,
): SignalSender {
  const { senderPid, senderName, senderProgram, senderUid, senderCgroup } = signal;
  const { name, sentAt, origin } = found;
  const cgroup = pathOf(senderCgroup);
  const where = whereaboutsOf(cgroup);
  const ancestors = signal.ancestors.map((ancestor) => {
    const path = pathOf(ancestor.cgroup);
    return { pid: ancestor.pid, name: ancestor.name, cgroup: path, ...whereaboutsOf(path) };
  });
  const agent = { pid: senderPid, name: senderName, unit: where.unit, ancestors };
  const reason = onBehalfReason(agent);
  return {
    signal: name,
    sentAt,
    origin,
    pid: senderPid,
    startedAt: startOf(signal),
    name: senderName,
    program: senderProgram,
    commandLine,
    uid: senderUid,
    cgroup,
    ...where,
    ancestors,
    onBehalf: reason !== null,
    onBehalfReason: reason,
    likelyClients:
      reason === null ? null : clientsOf({ pid: senderPid, onBehalfReason: reason, sentAt }),
  };
}
