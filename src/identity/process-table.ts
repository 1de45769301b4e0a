/** What a table says of one process. */
export type ProcessRow = {
  pid: number;
  parentPid: number | null;
  /** The ids of its process group and of its session, as /proc tells them; `null` elsewhere. */
  groupId: number | null;
  sessionId: number | null;
  name: string | null;
  /** The effective user id. */
  uid: number | null;
  /** In hundredths of a second; since boot on Linux, since 1970 elsewhere. `null`: not told. */
  startTicks: number | null;
  /** Every thread has ended; its parent has not reaped it yet. */
  isDead: boolean;
  isKernelThread: boolean;
};

/** `'unknown'`: there is something, or may be; it could not be looked at. */
export type Lookup = ProcessRow | 'unknown';

/** The processes that there are, as they can be read at any time, on any system. */
export interface ProcessTable {
  /** How it is read. */
  readonly by: '/proc' | 'ps' | 'signal 0';
  /** How far two readings of one start may lie apart, in ticks. */
  readonly startTolerance: number;
  /** `null`: not in the table. Throws where the table cannot be read. */
  lookNow(pid: number): Lookup | null;
  /** Those of these pids that are in the table, perhaps without a uid; rejects where it cannot be read. */
  look(pids: readonly number[]): Promise<Map<number, Lookup>>;
  /** All there are; rejects where the table cannot be read. */
  list(): Promise<Map<number, Lookup>>;
  startTime(startTicks: number): Date;
}
