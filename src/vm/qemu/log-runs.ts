import type { QmpEvent } from './qmp-event.js';

/** Nobody says more than that it runs so soon; and that, /proc and the log may date so far apart. */
const STARTING_MS = 20;

/**
 * The events of each start, of a log that several starts have in common. A machine that runs cannot resume,
 * and one that has shut down says nothing more, unless it stays, which STOP tells at once.
 */
export function splitLives(events: readonly QmpEvent[]): QmpEvent[][] {
  const lives: QmpEvent[][] = [];
  let life: QmpEvent[] = [];
  let runs = false;
  for (const event of events) {
    const isNext =
      (event.event === 'RESUME' && runs) ||
      (life.at(-1)?.event === 'SHUTDOWN' && event.event !== 'STOP');
    if (isNext) {
      lives.push(life);
      life = [];
      runs = false;
    }
    if (event.event === 'RESUME') runs = true;
    if (event.event === 'STOP') runs = false;
    life.push(event);
  }
  if (life.length > 0) lives.push(life);
  return lives;
}

/** Whether a life's events are there from its beginning: one that was started paused has said nothing. */
export function isWhole(life: readonly QmpEvent[]): boolean {
  return life[0]?.event === 'RESUME';
}

/** What is known of one start among others that have the same log. */
export interface LifeBounds {
  /** When its process started; `null`: not known. */
  startedAt: Date | null;
  /** What came up to then is another's; `null`: nothing is known of that. */
  after: Date | null;
  /** When it was seen to be there; `null`: it was not. */
  seenAt: Date | null;
  /** When it had ended at the latest; `null`: not known. */
  endedAt: Date | null;
}

/** Its own events, of a log that others have written to before and after it. */
export function lifeOf(
  events: readonly QmpEvent[],
  { startedAt, after, seenAt, endedAt }: LifeBounds,
): QmpEvent[] {
  const start = startedAt?.getTime() ?? -Infinity;
  const until = endedAt?.getTime() ?? Infinity;
  const isOwn = ({ event, at }: QmpEvent) => {
    if (at === null) return true;
    const from = event === 'RESUME' ? start - STARTING_MS : start + STARTING_MS;
    return at.getTime() >= Math.max(from, later(after)) && at.getTime() <= until;
  };
  const lives = splitLives(events.filter(isOwn));
  if (startedAt !== null || after !== null || seenAt === null) return lives[0] ?? [];
  // When it started is not known: it was there then, so that the last one that had begun is its own.
  const begun = lives.filter(([first]) => (first?.at?.getTime() ?? 0) <= seenAt.getTime());
  return begun.at(-1) ?? lives[0] ?? [];
}

function later(after: Date | null): number {
  return after === null ? -Infinity : after.getTime() + 1;
}
