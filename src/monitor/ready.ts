import type { Downgrade } from '../events/exit-event.js';
import type { SourceReady } from '../events/source-ready.js';
import type { MemoryKind } from '../memory/keeping.js';

import type { ExitWatch } from './exit-watch.js';

/**
 * The monitor is running: every exit from now on is reported.
 *
 * @see [Options](../../docs/options.md)
 */
export type Ready = SourceReady & {
  /**
   * What remembers exits while no monitor is running.
   * - `'recorder'`: programs in the kernel, which record how processes exit
   * - `'descriptor-store'`: systemd, which keeps such programs, or a pidfd of each watched process
   * - `'none'`: nothing; what exits meanwhile is `'unknown'`
   */
  memory: MemoryKind;
  /** Why there is no better memory; `null` if there is none, or without `stateDir`. */
  memoryDowngrade: Downgrade | null;
  /**
   * The watches of earlier monitors with the same `stateDir`, oldest first. Some may have an exit
   * that is about to be delivered.
   */
  restored: readonly ExitWatch[];
};
