import { existsSync } from 'node:fs';
import { release } from 'node:os';

import type { ExitEvent } from '../../src';

const [major = 0, minor = 0] = release().split('.').map(Number);

const isSince = (wantedMajor: number, wantedMinor: number) =>
  major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);

/**
 * The features of this kernel by its version. The tests compare the package's findings with them.
 */
export const KERNEL = {
  /**
   * BPF programs and maps count against RLIMIT_MEMLOCK, until "bpf: Eliminate rlimit-based memory
   * accounting".
   */
  programsAreLocked: !isSince(5, 11),
  /** "cgroup: introduce cgroup.kill" */
  cgroupKill: isSince(5, 14),
  /** "bpf: Add bpf_task_pt_regs() helper": it distinguishes a system call from an interrupt. */
  tellsInterrupts: isSince(5, 15),
  /** A violation of seccomp rules sends a signal. Before, the process only ended as if by one. */
  seccompSignals: isSince(5, 16),
  /** The status of a zombie is that of its process. Before, it was that of its first thread. */
  zombieStatus: isSince(5, 17),
  /**
   * A signal that a tracer injects while it is blocked, and that is taken later, keeps the siginfo
   * with which it was sent: seen on 6.1, but not on 5.10.
   */
  tellsInjected: isSince(6, 1),
  /** "ptrace: Reimplement PTRACE_KILL by always sending SIGKILL". Before, nothing was sent. */
  ptraceKillSends: isSince(5, 19),
  /**
   * "signal: Guarantee that SIGNAL_GROUP_EXIT is set on process exit": if threads leave one by one,
   * the status is that of the last thread. Before, it was that of the first thread.
   */
  lastThreadsStatus: isSince(6, 0),
  /** "connector/cn_proc: Allow non-root users access" */
  ordinaryListeners: isSince(6, 6),
  /**
   * "bpf: refine kernel.unprivileged_bpf_disabled behaviour": it no longer forbids the use of pinned
   * maps.
   */
  sharesPins: isSince(5, 19),
  /** "pidfd: add pidfs" */
  pidfdInodes: isSince(6, 9),
  /** "pidfs: allow to retrieve exit information", even after the process was reaped. */
  pidfdStatus: isSince(6, 15),
  /**
   * "exit: move and extend sched_process_exit() tracepoint": a task still has its address space
   * there. On older kernels the BPF program is attached to a function through a direct call, which
   * arm64 supports since "arm64: ftrace: Add direct call support".
   */
  tellsPrograms: isSince(6, 4) || process.arch === 'x64',
} as const;

/**
 * The proc connector exists only in the host's network namespace (cn_init() in
 * drivers/connector/connector.c).
 */
export const HAS_CONNECTOR = existsSync('/proc/net/connector');

/** Whether this process may listen to it. */
export const MAY_LISTEN = HAS_CONNECTOR && (KERNEL.ordinaryListeners || process.getuid?.() === 0);

/** The fields of an event if a pidfd could not supply the status. */
export const LEFT_OPEN = {
  ...{ how: 'unknown', source: 'pidfd', traced: false },
  ...{ exitCode: null, signal: null, coreDumped: null, sender: null, oom: null },
} as const;

/**
 * Whether a pidfd could not supply the status of this end, because the kernel keeps none after a
 * reap.
 */
export function isLeftOpen({ source, how }: ExitEvent): boolean {
  return !KERNEL.pidfdStatus && source === 'pidfd' && how === 'unknown';
}

/** The expected fields of an end that only pidfds can report. */
export function orLeftOpen(event: ExitEvent, expected: object): object {
  return isLeftOpen(event) ? LEFT_OPEN : expected;
}
