import { isRequest } from '../events/ended-by.js';
import type { SignalSender } from '../events/signal-event.js';
import type { SignalName } from '../events/wait-status.js';

/** How many signals of the last two minutes to report of a process, not counting requests. */
export const MOST_RECEIVED = 16;

/** A signal that a process was sent. */
interface Received {
  sender: SignalSender;
}

/**
 * The first and the last request of each kind that a process was sent by others: they are kept until it ends, however
 * old they are and whatever comes after them.
 *
 * @param received the oldest first
 */
function lasting<T extends Received>(received: readonly T[], pid: number): Set<T> {
  const first = new Map<SignalName, T>();
  const last = new Map<SignalName, T>();
  for (const each of received) {
    const { sender } = each;
    if (!isRequest(sender, pid)) continue;
    if (!first.has(sender.signal)) first.set(sender.signal, each);
    last.set(sender.signal, each);
  }
  return new Set([...first.values(), ...last.values()]);
}

/**
 * Adds a signal. If there are too many, drops the oldest that a later one repeats, or else the oldest, of those that do not
 * last.
 */
export function remember<T extends Received>(received: T[], seen: T, pid: number): void {
  received.push(seen);
  if (received.length <= MOST_RECEIVED) return;
  const kept = lasting(received, pid);
  if (received.length - kept.size <= MOST_RECEIVED) return;
  const saysTheSame = (a: SignalSender, b: SignalSender) =>
    a.signal === b.signal && a.origin === b.origin && a.pid === b.pid;
  const isRepeated = (older: T, at: number) =>
    received.some((later, j) => j > at && saysTheSame(older.sender, later.sender));
  const repeated = received.findIndex((older, i) => !kept.has(older) && isRepeated(older, i));
  received.splice(repeated < 0 ? received.findIndex((each) => !kept.has(each)) : repeated, 1);
}

/** What to report of a process that has ended. @param isRecent whether it was sent in the last two minutes */
export function reported<T extends Received>(
  received: readonly T[],
  pid: number,
  isRecent: (each: T) => boolean,
): T[] {
  const kept = lasting(received, pid);
  return received.filter((each) => kept.has(each) || isRecent(each));
}
