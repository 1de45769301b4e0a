import type { ExitEvent } from './exit-event.js';
import type { SignalSender } from './signal-event.js';
import type { SignalName } from './wait-status.js';

/** Signals that programs catch to shut down cleanly, often with exit code 0. */
export const REQUESTS: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** How far back {@link ExitEvent.signalsReceived} goes, in ms. */
export const RECEIVED_MS = 120_000;

/**
 * Who sent the signal that killed the process. If the process caught a signal and then raised it
 * again, this is the original sender. `null` if no signal killed it, or if the sender is unknown.
 * @internal
 */
export function killerOf({ sender, raisedAfter }: ExitEvent): SignalSender | null {
  return raisedAfter ?? sender;
}

/**
 * The last signal that asked a process to shut down before it exited; `null` if none was seen.
 * @internal
 */
export function requestBefore(event: ExitEvent): SignalSender | null {
  if (event.how !== 'exited') return null;
  return event.signalsReceived.findLast(({ signal }) => REQUESTS.includes(signal)) ?? null;
}

/**
 * Whether the signal trace saw every signal of the process's last two minutes, or of its whole
 * lifetime. If so, a signal that the trace did not report was not sent. @internal
 */
export function hasSeenSignals({ traced, tracedSince, startedAt, exitedAt }: ExitEvent): boolean {
  if (!traced || tracedSince === null) return false;
  const sinceMs = tracedSince.getTime();
  if (exitedAt.getTime() - sinceMs >= RECEIVED_MS) return true;
  // `startedAt` is rounded down to a millisecond, `tracedSince` is rounded up.
  return startedAt !== null && sinceMs <= startedAt.getTime() + 1;
}
