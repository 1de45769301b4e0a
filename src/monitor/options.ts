import { isObject } from '../common/is-object.js';
import {
  checkAbortSignal,
  checkBoolean,
  checkInteger,
  checkMilliseconds,
  checkOneOf,
  checkOptionNames,
  invalidOption,
} from '../common/options.js';
import type { SourceName } from '../events/exit-event.js';
import type { MemoryOptions } from '../memory/keeping.js';
import { sourceChoices, sourceKind } from '../sources/registry.js';
import { DEFAULT_SOURCE_OPTIONS } from '../sources/source-defaults.js';
import type { SourceOptions } from '../sources/source-kind.js';
import type { Redact } from '../trace/command-lines.js';

import { checkMemory, type RecorderOptions } from './memory-options.js';

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
   * 10,000 events by the kernel's own count. The eBPF filter uses a quarter of it, for about 9,700
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
  /**
   * How long, in ms, an exit may wait for others, so that they are delivered together: default 0, at
   * most 10,000. With 100, many exits cost a fraction of what they cost one by one. It delays neither
   * processes that you watch nor signals for listeners of `signal`, and has no effect on the times in
   * events. `close()` does not deliver what still waits.
   */
  maxDelayMs?: number;
  /**
   * Whether events have the arguments of processes and of senders (`commandLine`). Default `false`,
   * because arguments may hold secrets. A function gets the arguments of each and returns those to show:
   * {@link redactSecrets} hides what is probably secret.
   */
  commandLines?: boolean | ((args: string[]) => string[]);
  /** Closes the monitor when aborted. */
  signal?: AbortSignal;
  /**
   * A directory in which the monitor keeps its watches, so that the next monitor with the same
   * directory goes on with them: see {@link Ready | restored}. It is created if it is missing, and
   * only one monitor can use it at a time. Exits while no monitor is running are remembered by a
   * recorder in the kernel, if possible: see {@link Ready | memory}.
   */
  stateDir?: string;
  /**
   * With `stateDir`: an exit is done with once its listeners have run (default `true`). With `false`,
   * call {@link ExitMonitor.commit} when you have stored an exit; until then, later monitors deliver
   * it again.
   */
  autoCommit?: boolean;
  /** With `stateDir`: the recorder, if there is none yet. */
  recorder?: RecorderOptions;
}

/**
 * Options of {@link ExitMonitor.watch}.
 *
 * @see [Options](../../docs/options.md)
 */
export interface WatchOptions {
  /** A name by which you find the watch again in {@link Ready | restored}; at most 256 characters. */
  key?: string;
  /** With `stateDir`: later monitors go on with this watch (default `true`). */
  durable?: boolean;
}

export interface CheckedOptions extends SourceOptions {
  signal: AbortSignal | undefined;
  /** `null` without `stateDir`. */
  memory: MemoryOptions | null;
  autoCommit: boolean;
}

/** Options of {@link waitForExit}. */
export interface WaitForExitOptions {
  /** How long to wait, in ms; default: forever. */
  timeoutMs?: number;
  /** When aborted, stops waiting; the process is not touched. */
  signal?: AbortSignal;
  /** As for an {@link ExitMonitor}. */
  source?: 'auto' | SourceName;
  /** As for an {@link ExitMonitor}; such calls share no monitor. */
  commandLines?: ExitMonitorOptions['commandLines'];
}

export interface CheckedWaitOptions {
  timeoutMs: number | undefined;
  signal: AbortSignal | undefined;
  source: 'auto' | SourceName;
  commandLines: boolean | Redact;
}

const MONITOR_OPTIONS = [
  ...(['scope', 'source', 'trace', 'receiveBufferBytes', 'queueLimit', 'pollIntervalMs'] as const),
  ...(['statusTimeoutMs', 'canaryIntervalMs', 'maxDelayMs', 'commandLines', 'signal'] as const),
  ...(['stateDir', 'autoCommit', 'recorder'] as const),
];

const MOST_KEY = 256;

/** Longer, the kernel's buffer might not hold what comes meanwhile. */
const MOST_DELAY_MS = 10_000;

const WAIT_OPTIONS = ['timeoutMs', 'signal', 'source', 'commandLines'] as const;

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
    maxDelayMs = DEFAULT_SOURCE_OPTIONS.maxDelayMs,
    commandLines = false,
    signal,
    stateDir,
    autoCommit = true,
    recorder = {},
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
  const delayMs = checkInteger('maxDelayMs', maxDelayMs, 0, MOST_DELAY_MS);
  const checkedScope = checkOneOf('scope', scope, ['watched', 'all']);
  return {
    scope: checkedScope,
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
    maxDelayMs: delayMs,
    redact: checkCommandLines(commandLines),
    signal: checkAbortSignal(signal),
    memory: checkMemory(stateDir, checkedScope, recorder, delayMs),
    autoCommit: checkBoolean('autoCommit', autoCommit),
  };
}

function checkCommandLines(commandLines: unknown): Redact | null {
  if (typeof commandLines === 'function') return commandLines as Redact;
  if (commandLines === true) return (args) => args;
  if (commandLines === false) return null;
  throw invalidOption('commandLines must be a boolean, or a function of arguments');
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkWatchOptions(options: unknown): { key: string | null; durable: boolean } {
  const { key = null, durable = true } = checkOptionNames(options, ['key', 'durable']);
  checkBoolean('durable', durable);
  if (key === null || (typeof key === 'string' && key.length <= MOST_KEY)) {
    return { key, durable: durable === true };
  }
  throw invalidOption(`key must be a string of at most ${MOST_KEY} characters`);
}

/**
 * Options of {@link ExitMonitor.close}.
 *
 * @see [What ended while nobody watched](../../docs/memory.md)
 */
export interface CloseOptions {
  /** Removes the recorder, and forgets all watches. Default `false`. */
  forget?: boolean;
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkCloseOptions(options: unknown): { forget: boolean } {
  const { forget = false } = checkOptionNames(options, ['forget']);
  checkBoolean('forget', forget);
  return { forget: forget === true };
}

/**
 * Returns the id of an exit.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`
 */
export function checkEvent(event: unknown): string {
  if (isObject(event) && typeof event['id'] === 'string') return event['id'];
  throw invalidOption('commit() requires an exit event');
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkWaitOptions(options: unknown): CheckedWaitOptions {
  const given = checkOptionNames(options, WAIT_OPTIONS);
  const { timeoutMs, signal, source = 'auto', commandLines = false } = given;
  return {
    timeoutMs: timeoutMs === undefined ? undefined : checkMilliseconds('timeoutMs', timeoutMs),
    signal: checkAbortSignal(signal),
    source: checkOneOf('source', source, sourceChoices()),
    commandLines: checkCommandLines(commandLines) ?? false,
  };
}
