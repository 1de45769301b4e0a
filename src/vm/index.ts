export { classifyStop } from './classify-stop.js';
export type { StopEvidence } from './stop-evidence.js';
export { shouldRestart, type RestartAdvice } from './should-restart.js';
export { eventLogArguments, logArguments } from './event-log.js';
export { QmpClient, type QmpClientEvents } from './qmp-client.js';
export type { QmpEvent } from './qmp-event.js';
export { VmMonitor, type VmMonitorEvents, type VmMonitorOptions } from './vm-monitor.js';
export { guestAgentDriver, type GuestAgentOptions } from './guest-agent-driver.js';
export { qmpDriver, type QmpDriverOptions } from './qmp-driver.js';
export { vfkitDriver } from './vfkit-driver.js';
export {
  VmControl,
  type VmControlOptions,
  type VmControlStopOptions,
  type VmRequestOptions,
  type VmProcess,
  type VmState,
  type VmStopped,
} from './vm-control.js';
export type { VmDriver } from './vm-driver.js';
export { VmDaemon, type VmDaemonEvents, type VmDaemonOptions } from './vm-daemon.js';
export { VmDirectory } from './vm-directory.js';
export {
  readShutdownMarker,
  readVmRecord,
  readVmRecords,
  type ShutdownMarker,
  type VmEnd,
  type VmRecord,
} from './vm-record.js';
export type { KnownStart, VmDirectoryListener, VmStart } from './vm-start.js';
export type { VmOptions } from './vm-options.js';
export type { QemuCommand } from './qemu-command.js';
export type { ObeyedSignal } from './vm-log.js';
export type { Cause, Certainty, Evidence, Initiator, VmStop } from './vm-stop.js';
export { VmWatch, type VmStopOptions } from './vm-watch.js';
