import { existsSync } from 'node:fs';
import { release } from 'node:os';

import type { ExitEvent } from '../../src';

const [major = 0, minor = 0] = release().split('.').map(Number);

const isSince = (wantedMajor: number, wantedMinor: number) =>
  major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);

/** What this kernel has, by its version: what the package says of it is compared with that. */
export const KERNEL = {
  /** BPF programs and maps count against RLIMIT_MEMLOCK: until "bpf: Eliminate rlimit-based memory accounting". */
  programsAreLocked: !isSince(5, 11),
  /** "cgroup: introduce cgroup.kill" */
  cgroupKill: isSince(5, 14),
  /** "bpf: Add bpf_task_pt_regs() helper": by it what a system call does is told from an interrupt. */
  tellsInterrupts: isSince(5, 15),
  /** Who breaks the rules of seccomp is sent a signal; before, it just ended as if by one. */
  seccompSignals: isSince(5, 16),
  /** A zombie shows what its process ended with; before, what its first thread did. */
  zombieStatus: isSince(5, 17),
  /**
   * A signal that a tracer has injected while it was blocked, and that is taken when it is not any more, is
   * told by the siginfo that it was sent with: seen on 6.1, and not on 5.10.
   */
  tellsInjected: isSince(6, 1),
  /** "ptrace: Reimplement PTRACE_KILL by always sending SIGKILL"; before, nothing was sent. */
  ptraceKillSends: isSince(5, 19),
  /**
   * "signal: Guarantee that SIGNAL_GROUP_EXIT is set on process exit": where threads leave one by one, the
   * status is the last one's; before, the first thread's.
   */
  lastThreadsStatus: isSince(6, 0),
  /** "connector/cn_proc: Allow non-root users access" */
  ordinaryListeners: isSince(6, 6),
  /** "pidfd: add pidfs" */
  pidfdInodes: isSince(6, 9),
  /** "pidfs: allow to retrieve exit information": also of what was reaped. */
  pidfdStatus: isSince(6, 15),
  /**
   * "exit: move and extend sched_process_exit() tracepoint": a task still has its address space there.
   * Before, a BPF program runs at a function: by direct calls, which arm64 has since "arm64: ftrace: Add
   * direct call support".
   */
  tellsPrograms: isSince(6, 4) || process.arch === 'x64',
} as const;

/** The proc connector is in the host's network namespace only (cn_init() in drivers/connector/connector.c). */
export const HAS_CONNECTOR = existsSync('/proc/net/connector');

/** Whether we may listen to it. */
export const MAY_LISTEN = HAS_CONNECTOR && (KERNEL.ordinaryListeners || process.getuid?.() === 0);

/** What an event says where a pidfd could not tell the status. */
export const LEFT_OPEN = {
  ...{ how: 'unknown', source: 'pidfd', traced: false },
  ...{ exitCode: null, signal: null, coreDumped: null, sender: null, oom: null },
} as const;

/** Whether a pidfd could not tell the status of this end, since the kernel has none of what was reaped. */
export function isLeftOpen({ source, how }: ExitEvent): boolean {
  return !KERNEL.pidfdStatus && source === 'pidfd' && how === 'unknown';
}

/** What is to be told of an end that pidfds alone can tell. */
export function orLeftOpen(event: ExitEvent, expected: object): object {
  return isLeftOpen(event) ? LEFT_OPEN : expected;
}
