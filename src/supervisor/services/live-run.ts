import type { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';

import type { Health } from './health.js';
import type { RestartDecision } from './restart-policy.js';
import type { StoredRun } from './service-record.js';

/** The present run. */
export interface LiveRun {
  stored: StoredRun;
  /** The restarts that were requested when its id was reserved. */
  generation: number;
  /** Its command was executed. */
  isStarted: boolean;
  /** By the clock of the supervisor. */
  startedAtMs: number;
  /** `null`: it has not ended, as far as we were told. */
  exit: ExitEvent | null;
  livedMs: number | null;
  /** Its end was told. */
  decision: RestartDecision | null;
  health: Health | null;
  /** Why its health requires a restart. */
  unhealthy: string | null;
  isStopping: boolean;
  /** It was asked for, and its keeper has not answered. */
  isLaunching: boolean;
  /** Its stop ended with nothing left. */
  isGone: boolean;
  isPaused: boolean;
  /** It may not have been paused before the supervisor died. */
  isPauseDue: boolean;
  /** Why it could not be paused or resumed. */
  moveError: ExitwatchError | null;
  /** The demands at that time. */
  decidedAt: number;
  /** Since when its host knows that it has ended, but has not told; by the clock. */
  overdueSinceMs: number | null;
  /** Cuts its control command short. */
  control: AbortController;
}

export function newLive(stored: StoredRun, generation: number): LiveRun {
  return {
    stored,
    generation,
    isStarted: false,
    startedAtMs: 0,
    exit: null,
    livedMs: null,
    decision: null,
    health: null,
    unhealthy: null,
    isStopping: false,
    isLaunching: false,
    isGone: false,
    isPaused: stored.isPaused,
    isPauseDue: false,
    moveError: null,
    decidedAt: 0,
    overdueSinceMs: null,
    control: new AbortController(),
  };
}
