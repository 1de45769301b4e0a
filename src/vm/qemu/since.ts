/** How far the clocks of two processes may differ. */
export const CLOCK_SLACK_MS = 100;

/** Whether this can come from a process that started then, not from an earlier one. */
export function isSince(at: Date | null, startedAt: Date | null): boolean {
  if (at === null || startedAt === null) return true;
  return at.getTime() >= startedAt.getTime() - CLOCK_SLACK_MS;
}
