import type { ExitEvent } from './exit-event.js';
import type { SignalSender } from './signal-event.js';
import type { SignalName } from './wait-status.js';

/** What a program catches to end in good order; it may then exit with 0. */
export const REQUESTS: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** How far back {@link ExitEvent.signalsReceived} goes, in ms. */
export const RECEIVED_MS = 120_000;

/**
 * Who sent the signal that a process ended by. Where it has caught one and then sent the same to itself:
 * who had sent it first. `null` where no signal ended it, or nobody knows whose. @internal
 */
export function killerOf({ sender, raisedAfter }: ExitEvent): SignalSender | null {
  return raisedAfter ?? sender;
}

/** The last signal that asked a process to end before it exited; `null` where none was seen. @internal */
export function requestBefore(event: ExitEvent): SignalSender | null {
  if (event.how !== 'exited') return null;
  return event.signalsReceived.findLast(({ signal }) => REQUESTS.includes(signal)) ?? null;
}

/**
 * Whether the signal trace saw all that a process was sent in its last two minutes, or in its life: so
 * that a signal that it does not know of did not come. @internal
 */
export function hasSeenSignals({ traced, tracedSince, startedAt, exitedAt }: ExitEvent): boolean {
  if (!traced || tracedSince === null) return false;
  const sinceMs = tracedSince.getTime();
  if (exitedAt.getTime() - sinceMs >= RECEIVED_MS) return true;
  // Its start is cut down to a millisecond, and the other rounded up.
  return startedAt !== null && sinceMs <= startedAt.getTime() + 1;
}
