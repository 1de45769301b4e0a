import { parseQmpEvent, type QmpEvent } from './qmp-event.js';

/** The guest set its clock: up to once a second, and of no interest. */
export const CLOCK_EVENT = 'RTC_CHANGE';

/**
 * The event in one line of an event log. `null`: no event, or one of no interest; `'torn'`: the
 * line is incomplete, as a full disk leaves it.
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
