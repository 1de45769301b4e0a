/** How far the clocks of two processes may be apart. */
export const CLOCK_SLACK_MS = 100;

/** Whether that can have been of a process that started then; what was before is of an earlier one. */
export function isSince(at: Date | null, startedAt: Date | null): boolean {
  if (at === null || startedAt === null) return true;
  return at.getTime() >= startedAt.getTime() - CLOCK_SLACK_MS;
}
