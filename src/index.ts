export { ExitwatchError, type ExitwatchErrorCode } from './common/errors.js';
export { decodeWaitStatus, type SignalName, type WaitStatus } from './events/wait-status.js';
export { identify, type ProcessIdentity } from './identity/process-identity.js';
export type {
  Downgrade,
  ExitEvent,
  Filter,
  Gap,
  MonitorEvent,
  Outcome,
  SourceChange,
  SourceName,
  UnknownReason,
} from './events/exit-event.js';
export type { Usage } from './events/usage.js';
export type { SourceReady } from './events/source-ready.js';
export type {
  Ancestor,
  LikelyClient,
  OnBehalfReason,
  SignalEvent,
  SignalSender,
} from './events/signal-event.js';
export type { Whereabouts } from './where/whereabouts.js';
export { locate } from './where/locate.js';
export type {
  CgroupContainer,
  CgroupLocation,
  CgroupMachine,
  CgroupPlace,
  CgroupPod,
  CgroupUnit,
  ContainerRuntime,
  LibvirtDriver,
  LocationReason,
} from './where/location.js';
export { redactSecrets } from './trace/redact-secrets.js';
export { ExitMonitor, type ExitMonitorEvents } from './monitor/exit-monitor.js';
export type { MonitorStats } from './monitor/monitor-stats.js';
export type {
  CloseOptions,
  ExitMonitorOptions,
  WaitForExitOptions,
  WatchOptions,
} from './monitor/options.js';
export type { RecorderOptions } from './monitor/memory-options.js';
export type { MemoryKind } from './memory/keeping.js';
export type { ExitWatch } from './monitor/exit-watch.js';
export type { Ready } from './monitor/ready.js';
export { waitForExit } from './monitor/wait-for-exit.js';
export { probe, type MemoryReport, type ProbeReport, type TraceReport } from './monitor/probe.js';
export type {
  ConnectorReport,
  Obstacle,
  PidfdReport,
  PollReport,
  SourceReport,
} from './sources/source-report.js';
