import type { ExitEvent } from '../../events/exit-event.js';

import { Backoff } from './backoff.js';
import { realClock } from './clock.js';
import type { LiveRun } from './live-run.js';
import type { RestartDecision } from './restart-policy.js';
import type { ServiceState } from './service-state.js';

/** What an end means for the next start. */
export function account(
  state: ServiceState,
  live: LiveRun,
  exit: ExitEvent,
  decision: RestartDecision,
): void {
  const { record } = state;
  // Somebody has asked for another one while what this one has left behind ended.
  const isOutdated = live.decidedAt !== state.demands;
  const { reason: why } = decision;
  const isAsked = why === 'restart' || why === 'stop' || why === 'reboot' || isOutdated;
  record.attempts = isAsked ? 0 : attemptsAfter(state, live, exit);
  record.dueAtMs = 0;
  if (state.goal !== 'up') return;
  // Somebody has started it again while it ended.
  if (decision.reason === 'stop') return;
  if (isOutdated) delayNext(state, 'it was asked to run', 'restart');
  else if (decision.restart) delayNext(state, decision.because, decision.reason);
  else record.rest = decision.reason === 'gave-up' ? 'failed' : 'ended';
}

/** Starts in a row without a healthy run, if this one has ended so. */
export function attemptsAfter(state: ServiceState, live: LiveRun, exit: ExitEvent): number {
  const { clock } = state.host;
  const byClock = clock.now() - live.startedAtMs;
  const isOurs = clock !== realClock && !exit.isRepeated;
  const livedMs = isOurs ? byClock : (live.livedMs ?? byClock);
  const backoff = new Backoff(state.policy.backoff);
  return backoff.attemptsAfter(state.record.attempts, livedMs);
}

/** When the next start is due; or that there is none. */
export function delayNext(state: ServiceState, because: string, reason: string): void {
  const backoff = new Backoff(state.policy.backoff);
  const { record } = state;
  const { attempts } = record;
  if (backoff.isLast(attempts)) {
    record.rest = 'failed';
    return;
  }
  const delayMs = backoff.delayMs(attempts + 1);
  record.dueAtMs = state.host.clock.now() + delayMs;
  record.planned = reason;
  if (delayMs === 0) return;
  state.host.emit('backoff', {
    service: state.name,
    attempt: attempts + 1,
    delayMs,
    nextStartAt: new Date(Date.now() + delayMs),
    because,
  });
}
