export { isAlive, exists, type Liveness } from './liveness.js';
export {
  readPidfile,
  removePidfile,
  removeStalePidfile,
  writePidfile,
  type Pidfile,
  type PidfileState,
} from './pidfile.js';
export { kill, terminate, type Sent } from './send.js';
export { stop, type StopResult } from './stop.js';
export type { ControlStep, StopOptions } from './stop-options.js';
export type { StopEnd, StopVia, StopWarning } from './stop-sequence.js';
export type { StopWait } from './stop-wait.js';
export type { TreeLink } from './process-tree.js';
export type { StoppedMember } from './member-stop.js';
export type { StoppedTree } from './tree-stop.js';
export {
  IntentLog,
  readIntents,
  type ControlName,
  type Intent,
  type IntentOutcome,
  type IntentRecorder,
} from './intent-log.js';
export type { ProcessTarget } from './target.js';
