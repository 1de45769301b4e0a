/**
 * Does some work again and again, but not before the last time is over. It keeps no program alive.
 *
 * @param work never rejects
 * @returns ends it
 */
export function repeat(everyMs: number, work: () => Promise<void>): () => void {
  let isWorking = false;
  const timer = setInterval(() => {
    if (isWorking) return;
    isWorking = true;
    void work().finally(() => {
      isWorking = false;
    });
  }, everyMs);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
}
