import { LATE, unlessAborted, withDeadline } from '../common/deadline.js';
import { ExitwatchError } from '../common/errors.js';
import type { ExitEvent, SourceName } from '../events/exit-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { ExitMonitor } from './exit-monitor.js';
import type { ExitWatch } from './exit-watch.js';
import { checkWaitOptions, type CheckedWaitOptions, type WaitForExitOptions } from './options.js';

/** A monitor that all callers with the same source share; closed after the last of them. */
interface Shared {
  readonly source: 'auto' | SourceName;
  readonly monitor: ExitMonitor;
  isStarted: boolean;
  waiting: number;
}

const shared = new Map<string, Shared>();

/**
 * Resolves when a process has exited. It need not be a child, nor belong to the same user. Calls
 * with the same source share one monitor.
 *
 * The watch is armed when this returns: from then on, the exit and the senders of signals are seen.
 * For that, the first call blocks the event loop until the signal trace runs (if it can), for about
 * 20 ms and at most 2 s. {@link ExitEvent | tracedSince} says when the trace began.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_TIMEOUT`, `ERR_EXITWATCH_ABORTED`,
 * `ERR_EXITWATCH_INVALID_OPTION`, and whatever {@link ExitMonitor.watch} throws or
 * {@link ExitMonitor.start} rejects with.
 *
 * @param target a pid, or the identity of a process, which may be gone already: see
 *   {@link ExitMonitor.watch}
 * @see [Wait for one process](../../docs/wait-for-one.md)
 */
export async function waitForExit(
  target: number | ProcessIdentity,
  options: WaitForExitOptions = {},
): Promise<ExitEvent> {
  const { timeoutMs, signal, source, commandLines } = checkWaitOptions(options);
  if (signal?.aborted === true) throw aborted('a process', signal);
  const entry = commandLines === false ? enter(source) : alone(source, commandLines);
  try {
    using watch = entry.monitor.watch(target);
    start(entry);
    entry.monitor.awaitTrace();
    return await limit(watch, timeoutMs, signal);
  } finally {
    leave(entry);
  }
}

function enter(source: 'auto' | SourceName): Shared {
  let entry = shared.get(source);
  if (entry === undefined) {
    entry = { source, monitor: new ExitMonitor({ source }), isStarted: false, waiting: 0 };
    shared.set(source, entry);
  }
  entry.waiting++;
  return entry;
}

/** Nobody shares what goes through a function of its own. */
function alone(source: Shared['source'], commandLines: CheckedWaitOptions['commandLines']): Shared {
  const monitor = new ExitMonitor({ source, commandLines });
  // Read signals as they come: who may have asked for one is still running then.
  monitor.on('signal', () => undefined);
  return { source, monitor, isStarted: false, waiting: 1 };
}

function start(entry: Shared): void {
  if (entry.isStarted) return;
  entry.isStarted = true;
  // Pending calls reject with their watches; the next call creates another monitor.
  const forget = () => {
    remove(entry);
  };
  entry.monitor.on('error', forget);
  entry.monitor.start().catch(forget);
}

function leave(entry: Shared): void {
  if (--entry.waiting > 0) return;
  remove(entry);
  void entry.monitor.close();
}

function remove(entry: Shared): void {
  if (shared.get(entry.source) === entry) shared.delete(entry.source);
}

async function limit(
  { identity, exited }: ExitWatch,
  timeoutMs: number | undefined,
  signal: AbortSignal | undefined,
): Promise<ExitEvent> {
  const who = `process ${identity.pid}`;
  const watched = unlessAborted(exited, signal, () => aborted(who, signal));
  const event = await withDeadline(watched, timeoutMs);
  if (event !== LATE) return event;
  const detail = `${who} did not end within ${timeoutMs ?? 0} ms`;
  throw new ExitwatchError('ERR_EXITWATCH_TIMEOUT', detail);
}

function aborted(who: string, signal: AbortSignal | undefined): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_ABORTED', `waiting for the end of ${who} was aborted`, {
    cause: signal?.reason,
  });
}
