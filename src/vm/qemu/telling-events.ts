import { timelineOf } from '../evidence/timeline.js';

import type { QmpEvent } from './qmp-event.js';
import { meaningOf } from './qmp-meaning.js';

/** Those that matter; of others there may be any number. */
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

/** Whether an event says something of a machine's end. */
export function isTelling({ event, data }: QmpEvent): boolean {
  return KEPT.includes(event) || (event === AGENT && data['open'] === true);
}

/** In the guest a port was opened, or closed: by its agent, if it is the agent's. */
const AGENT = 'VSERPORT_CHANGE';

/** Whether its guest may have had an agent at work, as far as these tell. */
export function hasHadAgent(events: readonly QmpEvent[]): boolean {
  return events.some(({ event }) => event === AGENT);
}

/** Of one run; of what is left of them when those are gone that say nothing any more. */
const MOST_EVENTS = 1000;

/**
 * Keeps an event. A machine that was paused and went on, as for a backup, is what it was before: of that
 * nothing is kept. False: there are too many.
 */
export function keepEvent(events: QmpEvent[], event: QmpEvent): boolean {
  if (event.event === 'RESUME' && events.at(-1)?.event === 'STOP') {
    // After one of these, to go on is to begin anew.
    const before = events.slice(0, -1).map(meaningOf);
    const { shutdown, panicked, migrated } = timelineOf(before, null);
    if (shutdown === null && !panicked && !migrated) {
      events.pop();
      return true;
    }
  }
  // Once is enough.
  if (event.event === AGENT && hasHadAgent(events)) return true;
  const isRepeated = event.event === 'RESET' && events.at(-1)?.event === 'RESET';
  if (isRepeated) events.pop();
  if (events.length >= MOST_EVENTS) return false;
  events.push(event);
  return true;
}
