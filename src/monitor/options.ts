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
  /**
   * `'watched'` (default): only processes passed to `watch()`. `'all'`: every process of the host.
   */
  scope?: 'watched' | 'all';
  /**
   * Where exits come from.
   * - `'auto'` (default): the best source for the scope. That is the connector plus a pidfd for
   *   each watched process; pidfds alone if the connector does not work; polling if nothing else
   *   works.
   * - `'connector'`: the connector alone.
   * - `'pidfd'`: a pidfd for each watched process. Works without privileges and in containers, but
   *   not with scope `'all'`.
   * - `'poll'`: reads the process table every `pollIntervalMs`. Reports that a process is gone, but
   *   not how it ended.
   */
  source?: 'auto' | SourceName;
  /**
   * Whether to run the signal trace, which reports who sent signals. It requires CAP_BPF and
   * CAP_PERFMON, the host's pid namespace, Linux 5.10, and BTF.
   * - `'auto'` (default): run it if possible.
   * - `'on'`: `start()` rejects if it cannot run.
   * - `'off'`: events have `traced: false`.
   */
  trace?: 'auto' | 'on' | 'off';
  /**
   * The size of the kernel's event buffer; default 8 MiB. With the cBPF filter that holds about
   * 10,000 events by the kernel's own count. The eBPF filter uses a quarter of it, for about 13,000
   * exits of processes.
   */
  receiveBufferBytes?: number;
  /**
   * How many events to hold while JavaScript is busy (about 200 bytes each) and for each slow loop
   * (about 600 bytes each). Default 1,048,576.
   */
  queueLimit?: number;
  /**
   * How often to read the process table if polling is needed, in ms. Default 1,000; at least 10.
   */
  pollIntervalMs?: number;
  /**
   * How long to wait, in ms (default 1,000), for the parent to reap a watched process if only that
   * reveals the status; after that the event says `'not-reaped'`. Also how long any exit waits for
   * a pending kernel event that may change its status.
   */
  statusTimeoutMs?: number;
  /**
   * After this many ms without an event, a thread of exitwatch exits, and the kernel must report
   * it. If not, the stream has gone silent, which is a gap. Default 10,000; at least 100; 0 turns
   * this off.
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
  /** How long to wait, in ms; default: forever. */
  timeoutMs?: number;
  /** When aborted, stops waiting; the process is not touched. */
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
      `${kind.title} reports only watched processes; use another source for scope 'all'`,
    );
  }
  if (trace === 'on' && kind?.tellsSignals === false) {
    throw invalidOption(`${kind.title} does not report signals; use another source for trace 'on'`);
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
