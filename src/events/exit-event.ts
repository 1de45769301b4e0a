import type { ExitwatchErrorCode } from '../common/errors.js';

import type { SignalSender } from './signal-event.js';
import type { SignalName } from './wait-status.js';

/** Why nobody knows how a process ended. */
export type UnknownReason =
  /**
   * Its parent has not fetched its status, and until then only the privileged may see it: before
   * Linux 5.17 of those that a signal ended, and nobody of others.
   */
  | 'not-reaped'
  /**
   * Events were lost, see the {@link Gap}; or the one that would have told did not come within
   * `statusTimeoutMs`.
   */
  | 'lost'
  /**
   * Its status was for the privileged only: before Linux 6.15 nobody else can read it, nor can anybody
   * while pidfd_open(2) is forbidden. Or its threads ended with codes of their own, and what tells which
   * of them is the status is for the privileged only: the eBPF filter.
   */
  | 'not-permitted'
  /** It was found to be gone by polling, which tells no more. */
  | 'polled'
  /** It had ended before it could be watched. */
  | 'gone-before-watch';

/** How a process ended, where that is known; in the words of waitid(2). */
export type Outcome =
  | { how: 'exited'; exitCode: number; signal: null; coreDumped: false; unknownReason: null }
  | {
      how: 'killed';
      exitCode: null;
      signal: SignalName;
      /** `null`: no witness can know whether a core was written. */
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

/** A process ended: all of its threads are gone. */
export type ExitEvent = {
  event: 'exit';
  /**
   * The identity's id: never repeated, and the same as {@link ProcessIdentity.id} wherever the
   * process was seen alive or before it was reaped. A process that was seen only to end has an id of
   * its own.
   */
  id: string;
  pid: number;
  /** The process that was its parent when it ended; `null` where nobody waited for it (SIGCHLD
   * ignored), because the kernel does not tell then. */
  parentPid: number | null;
  /**
   * The kernel's name as it was last read: at most 15 bytes (`TASK_COMM_LEN`), untrusted; `null`
   * where it never was.
   */
  name: string | null;
  /**
   * The file name of the program it ran, without the path: `node` also where a process gave itself
   * another {@link ExitEvent.name}. Taken in the kernel, when its last thread ended. It is the file that
   * the kernel loaded: of a script the interpreter, behind a symbolic link what that leads to
   * (`python3.11`), of a memfd `memfd:NAME`, of a deleted file its last name. Untrusted.
   *
   * `null` where the name has more than 62 bytes, without the eBPF filter, where the kernel did
   * not tell the end itself; before Linux 6.16, where the kernel has no BPF trampolines or no
   * CONFIG_TASKSTATS; and before Linux 5.11, where locked memory is short.
   */
  program: string | null;
  /** The effective user id, as ps(1) shows it; `null` where not known. */
  uid: number | null;
  /**
   * The path of its cgroup in the v2 hierarchy ("/user.slice"), when it ended; `null` where that is not
   * mounted. Without the eBPF filter it is read a moment later: `null` also where the cgroup was
   * gone by then, where CAP_DAC_READ_SEARCH is lacking, and before Linux 6.13.
   */
  cgroup: string | null;
  /** With the eBPF filter to the millisecond, otherwise to the clock tick, 10 ms. */
  startedAt: Date | null;
  exitedAt: Date;
  /**
   * CLOCK_MONOTONIC of the host in nanoseconds: the kernel's stamp of the last exit that it told of
   * this process; `null` where the process went on after that, and a pidfd told its end.
   */
  exitedNs: number | null;
  /**
   * How far `exitedAt` may be off, either way, in ms. 0 where the kernel told the end itself; what
   * the reading took, where another thread may have ended later with 0; more when the clock was set.
   */
  uncertaintyMs: number;
  /** Who told its end. */
  source: SourceName;
  /**
   * No gap of the monitor overlapped the time for which it was observed: since the latest of its
   * start, `watch()` and `start()`; as far as that was known when it was told. A gap of a loop that was
   * too slow does not count.
   */
  lossless: boolean;
  /**
   * The signal trace saw every signal from `tracedSince` to the end, and knows who ended it: then
   * `sender: null` means that nobody did. `false` also where a signal ended it and whose that was is
   * not certain: it was sent before `tracedSince`, a debugger had a hand in it, or two threads took two
   * signals at once. `false` also where how it ended is not known.
   */
  traced: boolean;
  /**
   * Since when the signal trace was at work for this process: from its start, or later. Earlier signals
   * were not seen, so that `signalsReceived: []` says nothing of the time before. `null` where `traced`
   * is `false`.
   */
  tracedSince: Date | null;
  /**
   * Who sent the signal that ended it. `null` where none did; where `traced` is `false`, also where
   * that was not seen.
   */
  sender: SignalSender | null;
  /**
   * Programs catch a signal, clean up, and send the same to themselves, so that their parent sees it:
   * Node.js does. `sender` is the process itself then, and this is who had sent it that signal last, in
   * the 120 s before. `null` where nobody had, and where `sender` is not the process itself.
   */
  raisedAfter: SignalSender | null;
  /**
   * The signals of its last 120 s that could have ended it, and were not ignored; at most 16, in their
   * order: a program that catches SIGTERM and exits with 0 looks like one that ended by itself, but for
   * this. Those that runtimes catch all day are left out: caught faults,
   * timers and real-time signals that no other process has sent.
   */
  signalsReceived: readonly SignalSender[];
  /** The kernel's OOM killer ended it; `null` where that is not known. */
  oom: boolean | null;
} & Outcome;

/** Exits that may have been missed. */
export type Gap = {
  event: 'gap';
  from: Date;
  to: Date;
  /**
   * By `'queue-limit'`, and by `'receive-buffer'` with the eBPF filter: ends of processes.
   * With the cBPF filter, messages: exits of threads and execs, too. By `'trace-buffer'`: signals.
   * `null` where nobody counted.
   */
  lost: number | null;
  /**
   * `'receive-buffer'`: the kernel's was full; `'queue-limit'`: ours was; `'silenced'`: the kernel
   * told nothing any more, without an error, and was subscribed to anew; `'trace-buffer'`: signals
   * were lost, and no ends.
   */
  reason: 'receive-buffer' | 'queue-limit' | 'silenced' | 'trace-buffer';
  /** Watched processes that were found to have ended in the gap, and get their event after it. */
  recovered: number;
};

/** The monitor is at work: every process that ends from now on will be told. */
export type Ready = {
  event: 'ready';
  scope: 'watched' | 'all';
  source: SourceName;
  /** `null` where the connector is not in use. */
  filter: Filter | null;
  /** Why not a better source, or a better filter; `null` where there is none, or it was not wanted. */
  downgrade: Downgrade | null;
  /**
   * Ends that the kernel tells come with {@link ExitEvent.program}. `false` without the eBPF filter,
   * and on the older kernels that do not let us read it: see there.
   */
  namesPrograms: boolean;
  /**
   * The kernel's buffer as granted. With the eBPF filter a ring buffer of 144 bytes for each
   * process that ended, which takes a quarter of what was asked for, at least (a power of two), and half
   * of that where locked memory is short (before Linux 5.11); with the cBPF one a socket's, of some 832
   * bytes for each thread's exit and each exec, and without CAP_NET_ADMIN at most twice
   * `net.core.rmem_max`. `null` where the connector is not in use.
   */
  receiveBufferBytes: number | null;
  /** The signal trace is at work: events tell who sent the signals. */
  traced: boolean;
  /** Why it is not; `null` where it is, or was not wanted. */
  traceDowngrade: Downgrade | null;
};

/**
 * A witness of ends. `'connector'`: the proc connector, with pidfds beside it for watched processes;
 * `'pidfd'`: these alone; `'poll'`: the process table, read again and again.
 */
export type SourceName = 'connector' | 'pidfd' | 'poll';

/**
 * The monitor has another source than before: the connector failed, and pidfds have taken over; or it
 * works again. No watch is lost.
 */
export type SourceChange = {
  event: 'source';
  at: Date;
  source: SourceName;
  previous: SourceName;
  /** `null` where the connector is not in use. */
  filter: Filter | null;
  /** Why not a better source, or a better filter; `null` where there is none. */
  downgrade: Downgrade | null;
  /** See {@link Ready.namesPrograms}. */
  namesPrograms: boolean;
};

/**
 * How the kernel filters for us. `'ebpf'`: the dying task itself sees whether its process is
 * dead, and how it ended. `'cbpf'`: exits of threads come to us, and are joined here.
 */
export type Filter = 'ebpf' | 'cbpf';

/**
 * Why not the best: pidfds serve, and not the connector, for what its start would reject with; or, for
 * any other code, the cBPF filter and not the eBPF one; or no signal trace.
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
    | 'system';
  detail: string;
  /** What to do about it; `null` where we know nothing. */
  remedy: string | null;
};

/** What iterating over a monitor yields. */
export type MonitorEvent = ExitEvent | Gap | SourceChange;
