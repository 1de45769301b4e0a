/** What the process table says about one process. */
export type ProcessRow = {
  pid: number;
  parentPid: number | null;
  /** The ids of its process group and session from /proc; `null` on other systems. */
  groupId: number | null;
  sessionId: number | null;
  name: string | null;
  /** The effective user id. */
  uid: number | null;
  /**
   * In hundredths of a second; since boot on Linux, since 1970 on other systems. `null`: unknown.
   */
  startTicks: number | null;
  /** Every thread has exited, but its parent has not reaped it yet. */
  isDead: boolean;
  isKernelThread: boolean;
};

/** `'unknown'`: it exists, or may exist, but could not be read. */
export type Lookup = ProcessRow | 'unknown';

/** The processes that exist, readable at any time on any system. */
export interface ProcessTable {
  /** How the table is read. */
  readonly by: '/proc' | 'ps' | 'signal 0';
  /** How much two readings of the same start may differ, in ticks. */
  readonly startTolerance: number;
  /** `null`: not in the table. Throws if the table cannot be read. */
  lookNow(pid: number): Lookup | null;
  /**
   * Those of the given pids that are in the table, possibly without a uid; rejects if it cannot be
   * read.
   */
  look(pids: readonly number[]): Promise<Map<number, Lookup>>;
  /** All processes; rejects if the table cannot be read. */
  list(): Promise<Map<number, Lookup>>;
  startTime(startTicks: number): Date;
}
