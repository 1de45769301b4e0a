import type { ExitEvent } from '../../events/exit-event.js';
import type { SignalName } from '../../events/wait-status.js';

import type { KeeperRun } from './keeper-run.js';

/**
 * What {@link Keeper.open} found.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type KeeperReady = {
  /** The process of the keeper. */
  pid: number;
  /** The version of exitwatch that it comes from. */
  version: string;
  /** Runs whose keeper has died; this one is not their parent. */
  lost: KeeperRun[];
  /** It is the first process of a container, and keeps this program alive. @internal */
  isGuard: boolean;
};

/** The events of a {@link Keeper}. */
export interface KeeperEvents {
  /** A command was executed. */
  started: [KeeperRun];
  /**
   * The process of a run has ended, with the status of waitpid(2). Comes again after a restart until
   * the run is forgotten, then with `isRepeated: true`.
   */
  ended: [ExitEvent, KeeperRun];
  /** Nothing of a run is left. Comes after `ended`, and alone if the run is of an earlier boot. */
  empty: [KeeperRun];
  /** It has sent something to its `NOTIFY_SOCKET`: lines as in sd_notify(3); untrusted. */
  notify: [KeeperRun, string];
  /** A container was sent a signal; see `takeSignals()`. @internal */
  signal: [SignalName];
  /** The keeper had died, and another one has taken its place; or it was upgraded. */
  restarted: [KeeperReady];
  /** There is no keeper any more, and none can be started. */
  error: [Error];
  close: [];
}
