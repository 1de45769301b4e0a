import type { EventEmitter } from 'node:events';

import type { SignalName } from '../../events/wait-status.js';
import type { KeeperEvents, KeeperReady } from '../keeper/keeper-events.js';
import type { KeeperRun } from '../keeper/keeper-run.js';
import type { RunOptions } from '../keeper/run-options.js';
import type { StoppedRun, StopRunOptions } from '../keeper/stop-run.js';

/** What starts and stops processes for the workers: a {@link Keeper}, or what takes its place. */
export interface RunHost extends EventEmitter<KeeperEvents> {
  /** Who says that a run is gone which it does not know. */
  readonly source?: 'poll';
  open(): Promise<KeeperReady>;
  runs(): KeeperRun[];
  run(id: string): KeeperRun | null;
  start(options: RunOptions): Promise<KeeperRun>;
  stop(id: string, options?: StopRunOptions): Promise<StoppedRun>;
  signal(id: string, signal: SignalName, tree?: boolean): Promise<boolean>;
  pause(id: string): Promise<boolean>;
  resume(id: string): Promise<boolean>;
  forget(id: string): Promise<void>;
  /** Resolves when it has answered. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
