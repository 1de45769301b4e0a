import type { SignalSender } from '../signal-event.js';
import { signalName, signalNumber, type SignalName } from '../wait-status.js';

import { SignalFlag, type TracedSignal } from './signal-records.js';

/** `si_code` of <asm-generic/siginfo.h>. */
const SI_USER = 0;
const SI_TIMER = -2;
const SI_TKILL = -6;

const numbers = (...names: SignalName[]) => new Set(names.map(signalNumber));

/** What the kernel sends to a thread for what that did (force_sig_fault and its kin). */
const FAULTS = numbers('SIGSEGV', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGTRAP', 'SIGSYS');

/** The kernel sends these for interval timers only (kernel/time/itimer.c, posix-cpu-timers.c). */
const TIMERS = numbers('SIGALRM', 'SIGVTALRM', 'SIGPROF');

const SIGKILL = signalNumber('SIGKILL');

/** How a signal came about, by what the kernel knew of it. */
export function originOf(signal: TracedSignal): SignalSender['origin'] {
  const has = (flag: SignalFlag) => (signal.flags & flag) !== 0;
  if (has(SignalFlag.privileged)) return TIMERS.has(signal.signal) ? 'timer' : 'kernel';
  if (has(SignalFlag.noInfo)) return originOnBehalf(signal);
  // Anybody may say that his signal is a timer's: it is, unless a system call of his made it. Who
  // happened to run when it expired has nothing to do with it.
  if (signal.code === SI_TIMER && !has(SignalFlag.senderStack)) return 'timer';
  if (has(SignalFlag.senderKernel)) return 'kernel';
  if (signal.code === SI_USER) return 'kill';
  if (signal.code === SI_TKILL) return 'tgkill';
  if (signal.code < 0) return has(SignalFlag.senderStack) ? 'sigqueue' : 'kernel';
  return has(SignalFlag.toItself) && FAULTS.has(signal.signal) ? 'fault' : 'kernel';
}

/** What the kernel sends, without a siginfo, for what somebody does. */
function originOnBehalf(signal: TracedSignal): SignalSender['origin'] {
  const has = (flag: SignalFlag) => (signal.flags & flag) !== 0;
  // SIGPIPE and SIGXFSZ look like this: the kernel sends them to who wrote.
  if (signal.senderPid === signal.pid || has(SignalFlag.senderKernel)) return 'kernel';
  if (has(SignalFlag.senderExiting)) return has(SignalFlag.group) ? 'parent-death' : 'kernel';
  if (signal.signal !== SIGKILL || has(SignalFlag.group)) return 'kernel';
  return has(SignalFlag.senderTraces) ? 'ptrace' : 'cgroup-kill';
}

/** `cgroup`: the path of the sender's. */
export function senderOf(signal: TracedSignal, cgroup: string | null): SignalSender {
  const name = signalName(signal.signal);
  if (name === null) throw new RangeError(`there is no signal ${signal.signal}`);
  const sentAt = new Date(signal.sentAtMs);
  const origin = originOf(signal);
  switch (origin) {
    case 'kernel':
    case 'fault':
    case 'timer':
      return { signal: name, sentAt, origin, pid: null };
    default:
      return {
        signal: name,
        sentAt,
        origin,
        pid: signal.senderPid,
        name: signal.senderName,
        uid: signal.senderUid,
        cgroup,
        ancestors: signal.ancestors,
      };
  }
}
