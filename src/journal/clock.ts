/** The clocks of a journal. */
export interface Clock {
  /** The wall clock, in ms since 1970; somebody may set it. */
  now(): number;
  /** CLOCK_MONOTONIC, in ns: of one boot, and never set. */
  monotonicNs(): number;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  monotonicNs: () => Number(process.hrtime.bigint()),
};
