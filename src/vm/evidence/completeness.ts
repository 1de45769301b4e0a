import type { VmEvidence } from './vm-evidence.js';

type Coverage = Pick<
  VmEvidence,
  'eventsComplete' | 'eventsUnbroken' | 'heardSince' | 'initialPhase'
>;

/** Events may be missing, including the last ones. */
export function isBroken({ eventsComplete, eventsUnbroken }: Coverage): boolean {
  return !eventsComplete && !eventsUnbroken;
}

/** The state before the first event is known, and no event is missing since. */
export function isKnownFromTheFirst({
  eventsComplete,
  eventsUnbroken,
  initialPhase,
}: Coverage): boolean {
  return eventsComplete || (initialPhase !== null && eventsUnbroken);
}

/** Since when every event was heard; `null` if unknown, or if some are missing. */
export function heardSince({ eventsComplete, eventsUnbroken, heardSince }: Coverage): Date | null {
  if (eventsComplete) return new Date(0);
  return eventsUnbroken ? heardSince : null;
}
