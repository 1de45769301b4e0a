import { SignalFlag } from '../native/abi.js';
import type { SiginfoFields } from '../native/signal-records.js';

/** `si_code` of <asm-generic/siginfo.h>. */
export const SI_USER = 0;
export const SI_KERNEL = 0x80;
export const SI_TIMER = -2;
export const SI_SIGIO = -5;
export const SI_TKILL = -6;

/** What a signal has of its siginfo. */
export interface Siginfo {
  /** {@link SignalFlag} */
  flags: number;
  code: number;
  info: SiginfoFields;
  senderPidThere: number;
}

/**
 * Whether a signal that was generated is the one that a thread took, as far as the siginfo tells: the
 * kernel copies it from the one to the other (kernel/signal.c, __send_signal_locked() and
 * collect_signal()). Not everything is in it: several may carry the same.
 */
export function carries(generated: Siginfo, taken: Siginfo): boolean {
  const { flags, senderPidThere } = generated;
  const is = (code: number, pid: number) => taken.code === code && taken.info[0] === pid;
  if ((flags & SignalFlag.infoLost) !== 0) return is(SI_USER, 0);
  if ((flags & SignalFlag.privileged) !== 0) return is(SI_KERNEL, 0);
  // The kernel fills it in later: the user as well, by another user namespace perhaps.
  if ((flags & SignalFlag.noInfo) !== 0) return is(SI_USER, senderPidThere);
  if (generated.code !== taken.code) return false;
  // How often it has expired is counted until it is taken.
  if (taken.code === SI_TIMER) return true;
  return generated.info.every((word, i) => word === taken.info[i]);
}

/** Whether a process that sent it to itself wrote its own pid into it, as kill(2) and tgkill(2) do. */
export function namesSender({ code, info, senderPidThere }: Siginfo): boolean {
  return (code !== SI_USER && code !== SI_TKILL) || info[0] === senderPidThere;
}

/**
 * Whether it looks like one that a tracer has put in the place of what the process was sent: the kernel
 * writes the pid of the thread's parent into it then, which is the tracer, or was it a moment ago
 * (ptrace_signal()).
 */
export function mayBeInjected(taken: Siginfo): boolean {
  return taken.code === SI_USER && taken.info[0] === taken.senderPidThere;
}

/** Anybody may make such a siginfo (rt_sigqueueinfo(2)). */
export function isForgeable(code: number): boolean {
  return code < 0 && code !== SI_TKILL;
}
