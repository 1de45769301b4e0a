/** Time as a supervisor counts it: nobody sets it, and tests bring their own. */
export interface Clock {
  /** Milliseconds since some moment. */
  now(): number;
  /** Calls once, later. Returns what cancels it. */
  after(ms: number, call: () => void): () => void;
}

/** CLOCK_MONOTONIC: the same for the next supervisor of this boot, unlike performance.now(). */
export const realClock: Clock = {
  now: () => Number(process.hrtime.bigint()) / 1e6,
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};
