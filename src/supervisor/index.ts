export {
  Keeper,
  type KeeperEvents,
  type KeeperOptions,
  type KeeperReady,
} from './keeper/keeper.js';
export type { KeeperRun, RunFailure, RunState, RunUsage } from './keeper/keeper-run.js';
export type { RunLogs, RunOptions } from './keeper/run-options.js';
export type { RunMember, StoppedRun, StopRunOptions } from './keeper/stop-run.js';
