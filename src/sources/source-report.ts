import type { ExitwatchError, ExitwatchErrorCode } from '../common/errors.js';
import type { Downgrade, Filter } from '../events/exit-event.js';

/**
 * Why something cannot be used, and what to do about it.
 *
 * @see [What works here](../../docs/options.md#what-works-here)
 */
export type Obstacle = {
  /** The code that `ExitMonitor.start()` rejects with. */
  code: ExitwatchErrorCode;
  detail: string;
  /** `null` if no remedy is known. */
  remedy: string | null;
};

/**
 * The result of trying a source.
 *
 * @see [What works here](../../docs/options.md#what-works-here)
 */
export type SourceReport = {
  available: boolean;
  /** `null` if it is available. */
  obstacle: Obstacle | null;
};

/** @see [What works here](../../docs/options.md#what-works-here) */
export type ConnectorReport = SourceReport & {
  /** `null` if the connector cannot be used. */
  filter: Filter | null;
  /** Why the eBPF filter is not in use. */
  downgrade: Downgrade | null;
  /** What filters out processes that are not watched: the kernel, or the reader. */
  watchedSet: 'kernel' | 'user-space' | null;
  /** Exits come with the program's name: see `program` of an exit event. */
  namesPrograms: boolean;
};

/** @see [What works here](../../docs/options.md#what-works-here) */
export type PidfdReport = SourceReport & {
  /** Each process has an inode of its own, so a reused pid is always detected (Linux 6.9). */
  inodes: boolean;
  /** The status can be read after the process was reaped (Linux 6.15). */
  exitStatus: boolean;
};

/**
 * What polling would read.
 *
 * @see [What works here](../../docs/options.md#what-works-here)
 */
export type PollReport = SourceReport & {
  by: '/proc' | 'ps' | 'signal 0';
};

/** @internal */
export function obstacleOf({ code, detail, remedy }: ExitwatchError): Obstacle {
  return { code, detail, remedy: remedy ?? null };
}
