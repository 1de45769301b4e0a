export { ExitwatchError, type ExitwatchErrorCode } from './errors.js';
export { decodeWaitStatus, type SignalName, type WaitStatus } from './wait-status.js';
export { identify, type ProcessIdentity } from './process-identity.js';
export type {
  Downgrade,
  ExitEvent,
  Filter,
  Gap,
  MonitorEvent,
  Outcome,
  Ready,
  SourceChange,
  SourceName,
  UnknownReason,
} from './exit-event.js';
export type { Ancestor, SignalEvent, SignalSender } from './signal-event.js';
export { ExitMonitor, type ExitMonitorEvents } from './monitor/exit-monitor.js';
export type { MonitorStats } from './monitor/monitor-stats.js';
export type { ExitMonitorOptions, WaitForExitOptions } from './monitor/options.js';
export type { ExitWatch } from './monitor/exit-watch.js';
export { waitForExit } from './monitor/wait-for-exit.js';
export { probe, type ProbeReport, type TraceReport } from './monitor/probe.js';
export type {
  ConnectorReport,
  Obstacle,
  PidfdReport,
  PollReport,
  SourceReport,
} from './sources/source-report.js';
