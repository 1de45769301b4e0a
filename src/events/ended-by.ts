import type { ExitEvent } from './exit-event.js';
import type { SignalSender } from './signal-event.js';
import type { SignalName } from './wait-status.js';

/** Signals that programs catch to shut down cleanly, often with exit code 0. */
export const REQUESTS: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'];

/** How far back {@link ExitEvent.signalsReceived} goes for signals that are no requests, in ms. */
export const RECEIVED_MS = 120_000;

/** What a process that ends on SIGHUP takes at most; most daemons reload on it, and live on. */
const HANGUP_MS = 10_000;

/** What a process causes itself, though it did not send it. */
const OWN_DOING: readonly SignalSender['origin'][] = ['fault', 'timer'];

/** Whether something else than the process itself caused the signal. @internal */
export function isFromOutside(sender: SignalSender, pid: number): boolean {
  return sender.pid !== pid && !OWN_DOING.includes(sender.origin);
}

/** Whether it is a signal that asks a process to shut down, and not the process's own. @internal */
export function isRequest(sender: SignalSender, pid: number): boolean {
  return REQUESTS.includes(sender.signal) && isFromOutside(sender, pid);
}

/**
 * Who sent the signal that killed the process. If the process caught a signal and then raised it
 * again, this is the original sender. `null` if no signal killed it, or if the sender is unknown.
 * @internal
 */
export function killerOf({ sender, raisedAfter }: ExitEvent): SignalSender | null {
  return raisedAfter ?? sender;
}

/**
 * The signal that asked a process to shut down before it exited, however long before; `null` if none was seen. SIGQUIT counts
 * only if neither SIGTERM nor SIGINT came, and SIGHUP only in the last seconds if nothing else came: many programs tell their
 * state on the one, and reload on the other. What the process sent itself counts only if nobody else asked. Of several, the
 * last one.
 * @internal
 */
export function requestBefore(event: ExitEvent): SignalSender | null {
  if (event.how !== 'exited') return null;
  const { pid, exitedAt, signalsReceived } = event;
  const isRecent = ({ sentAt }: SignalSender) => exitedAt.getTime() - sentAt.getTime() <= HANGUP_MS;
  const asked = [
    signalsReceived.filter(({ signal }) => signal === 'SIGTERM' || signal === 'SIGINT'),
    signalsReceived.filter(({ signal }) => signal === 'SIGQUIT'),
    signalsReceived.filter((each) => each.signal === 'SIGHUP' && isRecent(each)),
  ];
  const byOthers = asked.map((each) => each.findLast((sender) => isRequest(sender, pid)));
  const any = asked.map((each) => each.at(-1));
  return [...byOthers, ...any].find((each) => each !== undefined) ?? null;
}

/** Whether all requests of a process's life are known: then there was none that is not told. @internal */
export function hasSeenRequests({ requestsSince, startedAt }: ExitEvent): boolean {
  return isSince(requestsSince, startedAt);
}

/** Whether something is known since the start of a process. `startedAt` is rounded down to a millisecond, `since` is rounded up. @internal */
export function isSince(since: Date | null, startedAt: Date | null): boolean {
  return since !== null && startedAt !== null && since.getTime() <= startedAt.getTime() + 1;
}

/**
 * Whether the signal trace saw every signal of the process's last two minutes, or of its whole
 * lifetime. If so, a signal that the trace did not report was not sent. @internal
 */
export function hasSeenSignals({ traced, tracedSince, startedAt, exitedAt }: ExitEvent): boolean {
  if (!traced || tracedSince === null) return false;
  if (exitedAt.getTime() - tracedSince.getTime() >= RECEIVED_MS) return true;
  return isSince(tracedSince, startedAt);
}
