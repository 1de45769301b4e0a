export { Keeper, type KeeperOptions } from './keeper/keeper.js';
export type { KeeperEvents, KeeperReady } from './keeper/keeper-events.js';
export type { KeeperRun, RunFailure, RunState, RunUsage } from './keeper/keeper-run.js';
export type { ProcessOptions, RunLogs, RunOptions } from './keeper/run-options.js';
export type { RunMember, StoppedRun, StopRunOptions } from './keeper/stop-run.js';
export type { BackoffOptions } from './services/backoff.js';
export type { SupervisorHealth } from './services/contact.js';
export type { Applied } from './services/desired-set.js';
export type {
  AskedBy,
  RestartDecision,
  RestartMode,
  RestartReason,
  StopIntent,
  StopPurpose,
} from './services/restart-policy.js';
export {
  Service,
  type RestartedService,
  type RestartServiceOptions,
  type StopServiceOptions,
} from './services/service.js';
export type {
  OrphanEvent,
  ServiceBackoff,
  ServiceEnd,
  ServiceStopRecord,
  ServiceExit,
  ServicePhase,
  ServiceRunEvent,
  ServiceStatus,
  ServiceStopped,
  SupervisorEvents,
  SupervisorWarning,
  Termination,
} from './services/service-events.js';
export type {
  ServiceCommand,
  ServiceReady,
  ServiceSpec,
  ServiceStop,
} from './services/service-spec.js';
export { Supervisor } from './services/supervisor.js';
export type { SupervisorMetrics } from './services/supervisor-metrics.js';
export type {
  StoppedAll,
  SupervisorOptions,
  SupervisorReady,
} from './services/supervisor-types.js';
export {
  type ConfiguredMachine,
  type ConfiguredService,
  defineServices,
  type ServicesConfig,
} from './services/define-services.js';
