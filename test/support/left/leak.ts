/** Something that a test has left. */
export interface Leak {
  /** With its article: `a process`. */
  kind: string;
  /** Which one it is. */
  name: string;
  /** Removes it, so that it cannot disturb other tests. Some things end only with Jest. */
  remove?: () => void;
}

const MOST_LINES = 20;

/** A line for each: `this file left a process: 1234 sleep 1000`. */
export function inWords(who: string, leaks: readonly Leak[]): string {
  const lines = leaks.slice(0, MOST_LINES).map(({ kind, name }) => `${who} left ${kind}: ${name}`);
  const more = leaks.length - lines.length;
  return [...lines, ...(more > 0 ? [`… and ${more} more`] : [])].join('\n');
}

/** Removes all that can be removed. */
export function removeAll(leaks: readonly Leak[]): void {
  for (const { remove } of leaks) {
    try {
      remove?.();
    } catch {
      // It has gone in the meantime, or something else that is left keeps it.
    }
  }
}

/** Resolves with what is still left after this time. What was told to end may need a moment. */
export async function leftAfter(ms: number, look: () => Leak[]): Promise<Leak[]> {
  const deadline = performance.now() + ms;
  for (let pauseMs = 5; ; pauseMs = Math.min(2 * pauseMs, 200)) {
    const leaks = look();
    if (leaks.length === 0 || performance.now() > deadline) return leaks;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
