import { timelineOf } from '../evidence/timeline.js';

import { bounded, type QmpEvent } from './qmp-event.js';
import { meaningOf } from './qmp-meaning.js';

/** Events that matter; of others there may be any number. */
const KEPT: readonly string[] = [
  'SHUTDOWN',
  'POWERDOWN',
  'RESET',
  'RESUME',
  'STOP',
  'SUSPEND_DISK',
  'GUEST_PANICKED',
  'WATCHDOG',
  'MIGRATION',
];

/** The event, {@link bounded}, if it bears on a machine's end; otherwise `null`. */
export function tellingOf(said: QmpEvent): QmpEvent | null {
  const { event, data } = said;
  const isTelling = KEPT.includes(event) || (event === AGENT && data['open'] === true);
  return isTelling ? bounded(said) : null;
}

/** A port was opened or closed in the guest: by its agent, if the port is the agent's. */
const AGENT = 'VSERPORT_CHANGE';

/**
 * Whether an agent may have run in the guest, judged by these events. `others`: ids of ports that
 * are not an agent's.
 */
export function hasHadAgent(events: readonly QmpEvent[], others: readonly unknown[] = []): boolean {
  return events.some(({ event, data }) => event === AGENT && !others.includes(data['id']));
}

/** For one run, without the events that no longer matter. */
const MOST_EVENTS = 1000;

/**
 * Keeps an event. A machine that was paused and resumed, as for a backup, is what it was before:
 * neither event is kept. Returns false if there are too many.
 */
export function keepEvent(events: QmpEvent[], event: QmpEvent): boolean {
  if (event.event === 'RESUME' && events.at(-1)?.event === 'STOP') {
    // After one of these, resuming starts over.
    const before = events.slice(0, -1).map(meaningOf);
    const { shutdown, panicked, migrated } = timelineOf(before, null);
    if (shutdown === null && !panicked && !migrated) {
      events.pop();
      return true;
    }
  }
  // Once for each port is enough.
  const isSame = (each: QmpEvent) => each.event === AGENT && each.data['id'] === event.data['id'];
  if (event.event === AGENT && events.some(isSame)) return true;
  // A reset from outside is another matter than the guest's own.
  const last = events.at(-1);
  const isRepeated = last?.event === 'RESET' && last.data['guest'] === event.data['guest'];
  if (event.event === 'RESET' && isRepeated) events.pop();
  if (events.length >= MOST_EVENTS) return false;
  events.push(event);
  return true;
}
