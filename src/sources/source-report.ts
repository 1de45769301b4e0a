import type { ExitwatchError, ExitwatchErrorCode } from '../common/errors.js';
import type { Downgrade, Filter } from '../events/exit-event.js';

/** Why something cannot be used, and what to do about it. */
export type Obstacle = {
  /** What `ExitMonitor.start()` rejects with. */
  code: ExitwatchErrorCode;
  detail: string;
  /** `null` where we know nothing. */
  remedy: string | null;
};

/** What came of trying a source. */
export type SourceReport = {
  available: boolean;
  /** `null` where it is. */
  obstacle: Obstacle | null;
};

export type ConnectorReport = SourceReport & {
  /** `null` where the connector cannot be used. */
  filter: Filter | null;
  /** Why the filter is not the eBPF one. */
  downgrade: Downgrade | null;
  /** What tells watched processes from others: the kernel, or the reader. */
  watchedSet: 'kernel' | 'user-space' | null;
  /** Ends come with the program's name: see `program` of an exit event. */
  namesPrograms: boolean;
};

export type PidfdReport = SourceReport & {
  /** Processes have an inode each, by which a reused pid is noticed in any case (Linux 6.9). */
  inodes: boolean;
  /** The status of a process that was reaped can be read (Linux 6.15). */
  exitStatus: boolean;
};

/** What polling would read. */
export type PollReport = SourceReport & {
  by: '/proc' | 'ps' | 'signal 0';
};

/** @internal */
export function obstacleOf({ code, detail, remedy }: ExitwatchError): Obstacle {
  return { code, detail, remedy: remedy ?? null };
}
