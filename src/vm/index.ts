export { classifyStop } from './qemu/classify-stop.js';
export type { StopEvidence } from './qemu/stop-evidence.js';
export { shouldRestart, type LaterStarts, type RestartAdvice } from './verdict/should-restart.js';
export { eventLogArguments, logArguments } from './qemu/event-log-arguments.js';
export { QmpClient, type QmpClientEvents } from './qemu/qmp-client.js';
export type { QmpEvent } from './qemu/qmp-event.js';
export { machineName } from './machine-name.js';
export { VmMonitor, type VmMonitorEvents, type VmMonitorOptions } from './monitor/vm-monitor.js';
export { guestAgentDriver, type GuestAgentOptions } from './qemu/guest-agent-driver.js';
export { qmpDriver, type QmpDriverOptions } from './qemu/qmp-driver.js';
export { vfkitDriver } from './vfkit/vfkit-driver.js';
export { VmControl } from './control/vm-control.js';
export type {
  VmControlOptions,
  VmControlStopOptions,
  VmRequestOptions,
  VmProcess,
  VmState,
  VmStopped,
} from './control/vm-control-options.js';
export type { VmDriver } from './control/vm-driver.js';
export { VmDaemon, type VmDaemonEvents, type VmDaemonOptions } from './daemon/vm-daemon.js';
export { VmDirectory } from './directory/vm-directory.js';
export { readShutdownMarker, type ShutdownMarker } from './daemon/shutdown-marker.js';
export {
  readVmRecord,
  readVmRecords,
  type StoredVmEnd,
  type VmEnd,
  type VmRecord,
} from './daemon/vm-record.js';
export type { Accounted, KnownStart, VmDirectoryListener, VmStart } from './directory/vm-start.js';
export type { VmOptions } from './monitor/vm-options.js';
export type { QemuCommand } from './qemu/qemu-command.js';
export type { QemuFiles } from './qemu/qemu-files.js';
export type { GuestAgent, ObeyedSignal, VmTestimony } from './evidence/vm-evidence.js';
export type {
  SaidPhase,
  ShutdownReason,
  VmEvent,
  VmHappening,
  VmPhase,
} from './evidence/vm-event.js';
export type { VmRequests, VmRun, VmWitness } from './evidence/vm-witness.js';
export type { Cause, Certainty, Evidence, Initiator, VmVerdict } from './verdict/vm-verdict.js';
export { VmWatch, type VmStopOptions } from './monitor/vm-watch.js';
