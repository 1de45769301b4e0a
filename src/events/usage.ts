/**
 * What a process used, in all of its threads, without its children. The CPU time lacks what its last thread
 * ran since the scheduler last counted it: up to a tick of the kernel, 1 to 10 ms. Of a process that ran for
 * less, it may be 0.
 *
 * @see [Events](../../docs/events.md)
 */
export type Usage = {
  /** CPU time in user mode, in ms: as getrusage(2) divides what the scheduler measured. */
  userMs: number;
  /** CPU time in the kernel, in ms. */
  systemMs: number;
  /**
   * The most memory that it had resident (RSS), also before it called exec. `ru_maxrss` of
   * getrusage(2).
   */
  maxRssBytes: number;
  /**
   * What it read from storage: not from caches, pipes and sockets. `read_bytes` of proc_pid_io(5).
   * `null` if the kernel does not count it (CONFIG_TASK_IO_ACCOUNTING).
   */
  readBytes: number | null;
  /** What it caused to be written to storage; the same. */
  writtenBytes: number | null;
};
