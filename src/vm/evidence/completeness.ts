import type { VmEvidence } from './vm-evidence.js';

type Coverage = Pick<
  VmEvidence,
  'eventsComplete' | 'eventsUnbroken' | 'heardSince' | 'initialPhase'
>;

/** Events may have come that nobody heard, also the last ones. */
export function isBroken({ eventsComplete, eventsUnbroken }: Coverage): boolean {
  return !eventsComplete && !eventsUnbroken;
}

/** What came before the first of the events is known, and nothing is missing since. */
export function isKnownFromTheFirst({
  eventsComplete,
  eventsUnbroken,
  initialPhase,
}: Coverage): boolean {
  return eventsComplete || (initialPhase !== null && eventsUnbroken);
}

/** Since when every event was heard; `null`: that is not known, or some are missing. */
export function heardSince({ eventsComplete, eventsUnbroken, heardSince }: Coverage): Date | null {
  if (eventsComplete) return new Date(0);
  return eventsUnbroken ? heardSince : null;
}
