/** Time as a supervisor counts it: nobody sets it, and tests bring their own. */
export interface Clock {
  /** Milliseconds since some moment. */
  now(): number;
  /** Calls once, later. Returns what cancels it. */
  after(ms: number, call: () => void): () => void;
}

/** The monotonic clock of Node.js. */
export const realClock: Clock = {
  now: () => performance.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};
