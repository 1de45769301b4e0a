import type { QmpEvent } from './qmp-event.js';

/** Nobody comes so far as to say a word. */
const STARTING_MS = 20;

/**
 * The events of each start, of a log that several starts have in common. A machine that runs cannot
 * resume: that is the next one's beginning.
 */
export function splitLives(events: readonly QmpEvent[]): QmpEvent[][] {
  const lives: QmpEvent[][] = [];
  let life: QmpEvent[] = [];
  let runs = false;
  for (const event of events) {
    if (event.event === 'RESUME' && runs) {
      lives.push(life);
      life = [];
    }
    if (event.event === 'RESUME') runs = true;
    if (event.event === 'STOP') runs = false;
    life.push(event);
  }
  if (life.length > 0) lives.push(life);
  return lives;
}

/**
 * Of these, the events of the process that has started and ended then. `endedAt` is `null` where that is
 * not known: then the next start is the limit.
 */
export function lifeOf(
  events: readonly QmpEvent[],
  startedAt: Date | null,
  endedAt: Date | null,
): QmpEvent[] {
  const until = endedAt?.getTime() ?? Infinity;
  const lives = splitLives(events.filter(({ at }) => at === null || at.getTime() <= until));
  const from = (startedAt?.getTime() ?? -Infinity) + STARTING_MS;
  // What was over by then was an earlier start's.
  return lives.find((life) => (life.at(-1)?.at?.getTime() ?? Infinity) >= from) ?? [];
}
