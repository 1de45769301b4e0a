import type { ExitwatchErrorCode } from '../common/errors.js';

import type { Whereabouts } from '../where/whereabouts.js';

import type { SignalSender } from './signal-event.js';
import type { Usage } from './usage.js';
import type { SignalName } from './wait-status.js';

/**
 * Why the outcome of a process is unknown.
 *
 * @see [Events](../../docs/events.md)
 */
export type UnknownReason =
  /**
   * Its parent has not reaped it. Until then only a privileged process can read the status; before
   * Linux 5.17 only if a signal killed it.
   */
  | 'not-reaped'
  /**
   * Events were lost (see {@link Gap}), or the event with the status did not arrive within
   * `statusTimeoutMs`.
   */
  | 'lost'
  /**
   * The status could not be read. Before Linux 6.15 that requires privileges; while pidfd_open(2)
   * is forbidden, they do not help. Or the threads exited with different codes, or another process
   * got the pid at once and ended too, and only the eBPF filter, which requires privileges, sees
   * which code is the status.
   */
  | 'not-permitted'
  /** Polling found that it is gone, and cannot find out more. */
  | 'polled'
  /** It had exited before it could be watched. */
  | 'gone-before-watch'
  /** It was watched, but exited while no monitor was running, and nothing recorded how. */
  | 'gone-while-unobserved';

/**
 * How a process ended, in the terms of waitid(2).
 *
 * @see [Events](../../docs/events.md)
 */
export type Outcome =
  | { how: 'exited'; exitCode: number; signal: null; coreDumped: false; unknownReason: null }
  | {
      how: 'killed';
      exitCode: null;
      signal: SignalName;
      /** `null`: it is not known whether a core was written. */
      coreDumped: false | null;
      unknownReason: null;
    }
  | { how: 'dumped'; exitCode: null; signal: SignalName; coreDumped: true; unknownReason: null }
  | {
      how: 'unknown';
      exitCode: null;
      signal: null;
      coreDumped: null;
      unknownReason: UnknownReason;
    };

/**
 * A process exited: all of its threads are gone.
 *
 * @see [Events](../../docs/events.md)
 */
export type ExitEvent = {
  event: 'exit';
  /**
   * Never reused. Equals {@link ProcessIdentity.id} if the process was seen while it was alive or
   * not yet reaped; otherwise the id is unique to this event.
   */
  id: string;
  pid: number;
  /**
   * Its parent when it exited. `null` if unknown: without the eBPF filter, and on arm64 before Linux
   * 6.4, nobody knows the parent of a process that was reaped at once, because the parent ignores
   * SIGCHLD or was quick.
   */
  parentPid: number | null;
  /**
   * The kernel's name for its parent when it exited: at most 15 bytes, untrusted. `null` without the
   * eBPF filter or a recorder, and where `parentPid` is.
   */
  parentName: string | null;
  /**
   * The kernel's name for it when last read: at most 15 bytes (`TASK_COMM_LEN`), untrusted. `null`
   * if it was never read.
   */
  name: string | null;
  /**
   * The file name of the executable, without its path: `node`, even if the process changed its
   * {@link ExitEvent | name}. Read in the kernel when the last thread exits. It names the file that
   * the kernel loaded: the interpreter of a script, the target of a symbolic link (`python3.11`),
   * `memfd:NAME` for a memfd, the last name of a deleted file. Untrusted.
   *
   * `null` without the eBPF filter, if the kernel did not report the exit itself, and if the name
   * is longer than 62 bytes. Also `null` before Linux 6.16 on kernels without BPF trampolines or
   * CONFIG_TASKSTATS, and before Linux 5.11 if RLIMIT_MEMLOCK is too low.
   */
  program: string | null;
  /**
   * Its arguments when it ended, the first one being the name it was called by: with `commandLines`,
   * and where {@link ExitEvent | program} is known, or only too long. Untrusted, and they may hold
   * secrets. At most 4064 bytes; if there were more, the last one ends with `…`. Empty ones at the end
   * are left out. `null` also if the kernel could not read them (their memory was swapped out) or if
   * there were none.
   */
  commandLine: readonly string[] | null;
  /** The effective user id, as in ps(1); `null` if unknown. */
  uid: number | null;
  /**
   * The path of its cgroup v2 when it exited ("/user.slice"); `null` if cgroup v2 is not mounted.
   * Without the eBPF filter, the path is read after the exit: then it is also `null` if the cgroup
   * is already gone, without CAP_DAC_READ_SEARCH, and before Linux 6.13.
   */
  cgroup: string | null;
  /** Accurate to 1 ms with the eBPF filter, otherwise to one clock tick (10 ms). */
  startedAt: Date | null;
  exitedAt: Date;
  /**
   * The kernel's time stamp of the exit: CLOCK_MONOTONIC of the host, in ns. `null` unless `source`
   * is `'connector'` or `'recorder'`.
   */
  exitedNs: number | null;
  /**
   * How far `exitedAt` may be off, in either direction, in ms. 0 if the kernel stamped the exit of
   * the last thread. Otherwise the time since the process was last known to be alive, plus any step
   * of the wall clock.
   */
  uncertaintyMs: number;
  /**
   * What reported the exit. `'recorder'`: it was recorded while no monitor was running. `'keeper'`:
   * its parent, a `Keeper` of `exitwatch/supervisor`.
   */
  source: SourceName | 'recorder' | 'keeper';
  /**
   * An earlier monitor with the same `stateDir` may have delivered it, but did not commit it. The
   * event has the same `id` as then.
   */
  isRepeated: boolean;
  /**
   * No gap overlapped the time during which the process was observed, which begins at its start, at
   * `watch()` or at `start()`, whichever is latest. Covers the gaps known when this event was sent;
   * gaps of a slow `for await` loop do not count.
   */
  lossless: boolean;
  /**
   * The signal trace saw every signal from `tracedSince` to the exit, and knows who killed the
   * process; `sender: null` then means that no signal did. `false` if a signal killed it but the
   * sender is uncertain: the signal was sent before `tracedSince`, a debugger was involved, or two
   * threads took two signals at once. Also `false` if the outcome is unknown.
   */
  traced: boolean;
  /**
   * When the signal trace began to cover this process: at its start, or later. Earlier signals were
   * not seen, so `signalsReceived: []` says nothing about them. `null` if `traced` is `false`.
   */
  tracedSince: Date | null;
  /**
   * Since when the requests in `signalsReceived` are whole. Later than `tracedSince` if a recorder told the exit and
   * has let go of earlier ones, and in rows of earlier versions, which kept them for 120 s. `null` if
   * `traced` is `false`.
   */
  requestsSince: Date | null;
  /**
   * Who sent the signal that killed it. `null` if no signal did; if `traced` is `false`, `null` can
   * also mean that the sender was not seen.
   */
  sender: SignalSender | null;
  /**
   * Some programs (Node.js is one) catch a signal, clean up, and raise it again so that their
   * parent sees it. Then `sender` is the process itself, and this is the last other sender of the
   * same signal; of signals that are no requests (see `signalsReceived`), at most 120 s earlier. `null`
   * if there is none, or if `sender` is not the process itself.
   */
  raisedAfter: SignalSender | null;
  /**
   * Signals that could have killed it and were not ignored, oldest first. They may explain why a program
   * that catches SIGTERM exited with 0.
   *
   * - Requests: the first and the last SIGTERM, SIGINT, SIGHUP and SIGQUIT that it did not send itself, of
   *   its whole life (since `requestsSince`). A server may take hours from its SIGTERM to its end.
   * - Of its last 120 s all others, and at most 16. Signals that runtimes catch routinely are left out: caught
   *   faults, timers, and real-time signals that no other process sent.
   */
  signalsReceived: readonly SignalSender[];
  /** The kernel's OOM killer killed it; `null` if unknown. */
  oom: boolean | null;
  /** `null` without the eBPF filter, and if only a recorder saw the exit. */
  usage: Usage | null;
} & Whereabouts &
  Outcome;

/**
 * Exits that may have been missed.
 *
 * @see [Events](../../docs/events.md)
 */
export type Gap = {
  event: 'gap';
  from: Date;
  to: Date;
  /**
   * For `'queue-limit'`, and for `'receive-buffer'` with the eBPF filter: exits of processes. For
   * `'receive-buffer'` with the cBPF filter: messages, which include thread exits and execs. For
   * `'trace-buffer'`: signals. For `'recorder-full'`: exits of processes. `null` if the number is
   * unknown.
   */
  lost: number | null;
  /**
   * - `'receive-buffer'`: the kernel's buffer was full
   * - `'queue-limit'`: the queue for JavaScript was full
   * - `'silenced'`: the kernel stopped sending events without an error; the monitor resubscribed
   * - `'trace-buffer'`: signals were lost, but no exits
   * - `'recorder-full'`: more processes exited while no monitor was running than the recorder has
   *   room for
   */
  reason: 'receive-buffer' | 'queue-limit' | 'silenced' | 'trace-buffer' | 'recorder-full';
  /** Watched processes that exited during the gap; their events follow it. */
  recovered: number;
};

/**
 * What reports exits. `'connector'`: the proc connector, plus a pidfd for each watched process.
 * `'pidfd'`: pidfds alone. `'poll'`: the process table, read at an interval.
 *
 * @see [Sources](../../docs/sources.md)
 */
export type SourceName = 'connector' | 'pidfd' | 'poll';

/**
 * The monitor switched to another source: the connector failed and pidfds took over, or it works
 * again. No watch is lost.
 *
 * @see [Events](../../docs/events.md)
 */
export type SourceChange = {
  event: 'source';
  at: Date;
  source: SourceName;
  previous: SourceName;
  /** `null` if the connector is not in use. */
  filter: Filter | null;
  /** Why a better source or filter is not in use; `null` if there is none. */
  downgrade: Downgrade | null;
  /** See {@link SourceReady.namesPrograms}. */
  namesPrograms: boolean;
};

/**
 * How exits are filtered. `'ebpf'`: a program in the kernel, run by each exiting task, decides
 * whether the process is dead and how it ended. `'cbpf'`: the kernel sends the exits of threads,
 * and exitwatch joins them.
 *
 * @see [Sources](../../docs/sources.md)
 */
export type Filter = 'ebpf' | 'cbpf';

/**
 * Why something better is not in use. An error code of `start()`: pidfds or polling replace the
 * connector. Any other code: the cBPF filter replaces the eBPF filter, or there is no signal trace.
 *
 * @see [Troubleshooting](../../docs/troubleshooting.md)
 */
export type Downgrade = {
  code:
    | ExitwatchErrorCode
    | 'cbpf-requested'
    | 'no-capabilities'
    | 'no-cap-bpf'
    | 'no-cap-perfmon'
    | 'bpf-blocked'
    | 'memlock-limit'
    | 'kernel-confidential'
    | 'no-btf'
    | 'kernel-lacks'
    | 'verifier-refused'
    | 'foreign-pid-namespace'
    | 'no-trial'
    | 'trial-failed'
    | 'polling'
    | 'no-bpffs'
    | 'newer-recorder'
    | 'untrusted-recorder'
    | 'watched-only'
    | 'system';
  detail: string;
  /** What to do about it; `null` if no remedy is known. */
  remedy: string | null;
};

/**
 * What iterating over a monitor yields.
 *
 * @see [Events](../../docs/events.md)
 */
export type MonitorEvent = ExitEvent | Gap | SourceChange;
