/** What {@link withDeadline} resolves with when the time is up. */
export const LATE = Symbol('late');

/**
 * Resolves or rejects like the work, or resolves with {@link LATE} if it takes longer. The work
 * itself goes on.
 *
 * @param limitMs at most what setTimeout() accepts; `undefined`: no limit
 * @param lifted removes the limit when aborted, so that no timer keeps the event loop alive
 */
export async function withDeadline<T>(
  work: T | PromiseLike<T>,
  limitMs: number | undefined,
  lifted?: AbortSignal,
): Promise<T | typeof LATE> {
  if (limitMs === undefined) return work;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(resolve, limitMs, LATE);
  });
  const lift = () => {
    clearTimeout(timer);
  };
  lifted?.addEventListener('abort', lift, { once: true });
  try {
    return await Promise.race([work, late]);
  } finally {
    lift();
    lifted?.removeEventListener('abort', lift);
  }
}

/** Resolves or rejects like the work; rejects with `toError()` if the signal is aborted first. */
export async function unlessAborted<T>(
  work: PromiseLike<T>,
  signal: AbortSignal | undefined,
  toError: () => Error,
): Promise<T> {
  if (signal === undefined) return work;
  let onAbort!: () => void;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      reject(toError());
    };
  });
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
