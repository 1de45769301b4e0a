import type { ExitwatchError } from '../../common/errors.js';
import { startOf } from '../../identity/process-identity.js';

import type { LiveRun } from './live-run.js';
import type {
  ServiceEnd,
  ServicePhase,
  ServiceStatus,
  ServiceStopRecord,
  Termination,
} from './service-events.js';
import type { ServiceRecord } from './service-record.js';
import type { StartOrder } from './start-order.js';

/** What the status of a service is made from. */
interface Described {
  readonly name: string;
  readonly record: ServiceRecord;
  readonly live: LiveRun | null;
  readonly phase: ServicePhase;
  readonly waitMs: number;
  readonly isLeaving: boolean;
  readonly lastError: ExitwatchError | null;
  readonly termination: Termination;
  readonly host: { readonly order: StartOrder };
}

/** What users are told of a service. */
export function statusOf(state: Described): ServiceStatus {
  const { record, live, name, phase, waitMs, host } = state;
  const { restarts, attempts, lastEnd } = record;
  const isRunning = live?.isStarted === true && live.exit === null;
  const identity = isRunning ? live.stored.identity : null;
  return {
    name,
    phase,
    run: live?.stored.id ?? null,
    pid: identity?.pid ?? null,
    identity,
    isReady: isRunning && live.health?.isReady === true,
    notReady: isRunning ? (live.health?.lastFailure ?? null) : null,
    stopped: stoppedOf(record),
    startedAt: identity === null ? null : startOf(identity),
    isCurrent:
      live === null || (!record.isRemoved && live.stored.runDigest === record.stored.runDigest),
    isRemoved: state.isLeaving,
    restarts,
    attempts,
    lastEnd: lastEnd === null ? null : ({ ...lastEnd, at: new Date(lastEnd.at) } as ServiceEnd),
    lastError: state.lastError?.message ?? null,
    nextStartAt: phase === 'backoff' ? new Date(Date.now() + waitMs) : null,
    waitsFor: host.order.waitsFor(name),
    termination: { ...state.termination },
  };
}

function stoppedOf({ stopped }: ServiceRecord): ServiceStopRecord | null {
  if (stopped === null) return null;
  const { until, at, why = null } = stopped;
  return { until, at: at === undefined ? null : new Date(at), why };
}
