import {
  checkAbortSignal,
  checkInteger,
  checkMilliseconds,
  checkOneOf,
  checkOptionNames,
  invalidOption,
} from '../common/options.js';
import type { SourceName } from '../events/exit-event.js';
import { sourceChoices, sourceKind } from '../sources/registry.js';
import { DEFAULT_SOURCE_OPTIONS } from '../sources/source-defaults.js';
import type { SourceOptions } from '../sources/source-kind.js';

/** Options of an {@link ExitMonitor}. */
export interface ExitMonitorOptions {
  /** `'watched'` (the default): only what `watch()` names; `'all'`: every process of the host. */
  scope?: 'watched' | 'all';
  /**
   * Which witness to use. `'auto'` (the default) takes the best there is for the scope: the connector,
   * with a pidfd for each watched process; pidfds alone where the connector does not work.
   * `'connector'`: it alone. `'pidfd'`: a pidfd for each watched process, which works also without
   * privileges and in containers; not with scope `'all'`. `'poll'`: the process table is read every
   * `pollIntervalMs`; it tells that a process is gone, and nothing of how. `'auto'` comes down to it
   * where nothing else works.
   */
  source?: 'auto' | SourceName;
  /**
   * Whether the signal trace is to tell who sent signals. `'auto'` (the default): where it can be had,
   * which takes CAP_BPF and CAP_PERFMON in the host's pid namespace, Linux 5.12, and BTF. `'on'`:
   * `start()` rejects where it cannot. `'off'`: events have `traced: false`.
   */
  trace?: 'auto' | 'on' | 'off';
  /**
   * The kernel's buffer for events: 8 MiB. That is some 10,000 events with the cBPF filter, by the
   * kernel's own count. With the eBPF one an eighth of it is taken, for some 13,000 ends of
   * processes.
   */
  receiveBufferBytes?: number;
  /**
   * Events held for JavaScript while it is busy, about 100 bytes each, and for a loop that is slow,
   * about 600 bytes each: 1,048,576.
   */
  queueLimit?: number;
  /** How often the process table is read, where that is needed: in ms, 1,000; at least 10. */
  pollIntervalMs?: number;
  /**
   * How long the end of a watched process may wait for its parent to reap it, where only that tells
   * its status; then the event says `'not-reaped'`. And how long any end may wait for an event of the
   * kernel that is still to come, if that may change its status. In ms, 1,000.
   */
  statusTimeoutMs?: number;
  /**
   * When the kernel has told nothing for so long, a thread of our own ends, and its exit has to come
   * back: otherwise the stream has gone silent, which is a gap. 10,000; at least 100; 0 turns it off.
   */
  canaryIntervalMs?: number;
  /** Closes the monitor when aborted. */
  signal?: AbortSignal;
}

export interface CheckedOptions extends SourceOptions {
  signal: AbortSignal | undefined;
}

/** Options of {@link waitForExit}. */
export interface WaitForExitOptions {
  /** How long to wait, in ms; for ever where it is missing. */
  timeoutMs?: number;
  /** Ends the waiting, not the process. */
  signal?: AbortSignal;
  /** As for an {@link ExitMonitor}. */
  source?: 'auto' | SourceName;
}

export interface CheckedWaitOptions {
  timeoutMs: number | undefined;
  signal: AbortSignal | undefined;
  source: 'auto' | SourceName;
}

const MONITOR_OPTIONS = [
  ...(['scope', 'source', 'trace', 'receiveBufferBytes', 'queueLimit', 'pollIntervalMs'] as const),
  ...(['statusTimeoutMs', 'canaryIntervalMs', 'signal'] as const),
];

const WAIT_OPTIONS = ['timeoutMs', 'signal', 'source'] as const;

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkOptions(options: unknown): CheckedOptions {
  const {
    scope = DEFAULT_SOURCE_OPTIONS.scope,
    source = DEFAULT_SOURCE_OPTIONS.source,
    trace = DEFAULT_SOURCE_OPTIONS.trace,
    receiveBufferBytes = DEFAULT_SOURCE_OPTIONS.receiveBufferBytes,
    queueLimit = DEFAULT_SOURCE_OPTIONS.queueLimit,
    pollIntervalMs = DEFAULT_SOURCE_OPTIONS.pollIntervalMs,
    statusTimeoutMs = DEFAULT_SOURCE_OPTIONS.statusTimeoutMs,
    canaryIntervalMs = DEFAULT_SOURCE_OPTIONS.canaryIntervalMs,
    signal,
  } = checkOptionNames(options, MONITOR_OPTIONS);
  const chosen = checkOneOf('source', source, sourceChoices());
  const kind = chosen === 'auto' ? null : sourceKind(chosen);
  if (scope === 'all' && kind?.tellsAll === false) {
    throw invalidOption(
      `${kind.title} tells only of watched processes: scope 'all' takes another source`,
    );
  }
  if (trace === 'on' && kind?.tellsSignals === false) {
    throw invalidOption(`${kind.title} tells of no signals: trace 'on' takes another source`);
  }
  return {
    scope: checkOneOf('scope', scope, ['watched', 'all']),
    source: chosen,
    trace: checkOneOf('trace', trace, ['auto', 'on', 'off']),
    receiveBufferBytes: checkInteger(
      'receiveBufferBytes',
      receiveBufferBytes,
      4096,
      1024 * 1024 * 1024,
    ),
    queueLimit: checkInteger('queueLimit', queueLimit, 1, 64 * 1024 * 1024),
    pollIntervalMs: checkInteger('pollIntervalMs', pollIntervalMs, 10, 86_400_000),
    statusTimeoutMs: checkMilliseconds('statusTimeoutMs', statusTimeoutMs),
    canaryIntervalMs:
      canaryIntervalMs === 0
        ? 0
        : checkInteger('canaryIntervalMs', canaryIntervalMs, 100, 86_400_000),
    signal: checkAbortSignal(signal),
  };
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkWaitOptions(options: unknown): CheckedWaitOptions {
  const { timeoutMs, signal, source = 'auto' } = checkOptionNames(options, WAIT_OPTIONS);
  return {
    timeoutMs: timeoutMs === undefined ? undefined : checkMilliseconds('timeoutMs', timeoutMs),
    signal: checkAbortSignal(signal),
    source: checkOneOf('source', source, sourceChoices()),
  };
}
