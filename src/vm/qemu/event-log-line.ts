import { parseQmpEvent, type QmpEvent } from './qmp-event.js';

/** The guest has set its clock: once a second, at worst, and nothing to us. */
export const CLOCK_EVENT = 'RTC_CHANGE';

/**
 * The event that a line of an event log is; `null`: none, or one of no interest; `'torn'`: it was not
 * written whole, as on a disk that is full.
 */
export function parseLogLine(line: string): QmpEvent | 'torn' | null {
  if (line.trim() === '') return null;
  try {
    const event = parseQmpEvent(JSON.parse(line));
    return event?.event === CLOCK_EVENT ? null : event;
  } catch {
    return 'torn';
  }
}
