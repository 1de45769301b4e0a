import { SignalFlag } from '../native/abi.js';
import type { SiginfoFields } from '../native/signal-records.js';

/** `si_code` of <asm-generic/siginfo.h>. */
export const SI_USER = 0;
export const SI_KERNEL = 0x80;
export const SI_TIMER = -2;
export const SI_SIGIO = -5;
export const SI_TKILL = -6;

/** The recorded part of a signal's siginfo. */
export interface Siginfo {
  /** {@link SignalFlag} */
  flags: number;
  code: number;
  info: SiginfoFields;
  senderPidThere: number;
}

/**
 * Whether a generated signal may be the one that a thread took, judged by the siginfo. The kernel
 * copies it from one to the other (kernel/signal.c, __send_signal_locked() and collect_signal()).
 * Several signals can carry the same siginfo.
 */
export function carries(generated: Siginfo, taken: Siginfo): boolean {
  const { flags, senderPidThere } = generated;
  const is = (code: number, pid: number) => taken.code === code && taken.info[0] === pid;
  if ((flags & SignalFlag.infoLost) !== 0) return is(SI_USER, 0);
  if ((flags & SignalFlag.privileged) !== 0) return is(SI_KERNEL, 0);
  // The kernel fills it in later. Ignore the uid: it may be mapped into another user namespace.
  if ((flags & SignalFlag.noInfo) !== 0) return is(SI_USER, senderPidThere);
  if (generated.code !== taken.code) return false;
  // The overrun count may still grow until the signal is taken.
  if (taken.code === SI_TIMER) return true;
  return generated.info.every((word, i) => word === taken.info[i]);
}

/**
 * Whether a signal that a process sent to itself has its own pid, as kill(2) and tgkill(2) write
 * it.
 */
export function namesSender({ code, info, senderPidThere }: Siginfo): boolean {
  return (code !== SI_USER && code !== SI_TKILL) || info[0] === senderPidThere;
}

/**
 * Whether a debugger may have replaced the signal. If so, the kernel wrote the pid of the thread's
 * parent into it (ptrace_signal()), which is the debugger, or was until just now.
 */
export function mayBeInjected(taken: Siginfo): boolean {
  return taken.code === SI_USER && taken.info[0] === taken.senderPidThere;
}

/** Any process can forge such a siginfo with rt_sigqueueinfo(2). */
export function isForgeable(code: number): boolean {
  return code < 0 && code !== SI_TKILL;
}
