import { isBroken } from '../../evidence/completeness.js';
import { ELSEWHERE, KILLED, ORDERLY } from '../causes.js';
import { isLongAfter, type Request } from '../power-requests.js';
import type { StopCase } from '../stop-case.js';
import type { Cause, VmVerdict } from '../vm-verdict.js';

const REQUESTED: Record<NonNullable<Request['by']> | 'somebody', Cause[]> = {
  us: ['admin-powerdown'],
  another: ['other-powerdown'],
  watchdog: ['watchdog-powerdown'],
  somebody: ['admin-powerdown', 'other-powerdown'],
};

/** The guest powered itself off, on its own or on request. */
export function byGuestShutdown(one: StopCase): VmVerdict {
  const { eventsComplete, exit, guestSetsExitCode } = one.evidence;
  const { hibernates, isPaused, presses } = one.timeline;
  const cause = hibernates ? 'guest-hibernate' : 'guest-shutdown';
  // The guest of a test suite chooses the exit code. A guest that lingers has not chosen any.
  const isError = exit?.how === 'exited' && exit.exitCode !== 0;
  const unheard = unheardCauses(one);
  const { requests } = one;
  if (isError && guestSetsExitCode !== false && !isPaused) {
    const others: Cause[] = [cause, ...causesOf(requests), ...(eventsComplete ? [] : unheard)];
    return one.verdict.likely('vmm-exit', 'guest', others);
  }
  // The machine lingered, and may have been started again while nobody listened.
  if (one.isBroken && isPaused) {
    return one.verdict.oneOf([cause, ...causesOf(requests), ...unheard]);
  }
  const verdict = byRequest(one, requests, [cause, ...unheard]);
  if (verdict !== null) return verdict;
  if (unheard.length > 0) return one.verdict.oneOf([cause, ...unheard]);
  return eventsComplete && presses.length === 0
    ? one.verdict.sure(cause, 'guest')
    : one.verdict.likely(cause, 'guest', []);
}

/** Causes that leave no trace: a request by an agent, or anything from before we listened. */
function unheardCauses({ evidence, timeline, wasIncoming }: StopCase): Cause[] {
  const { agent = 'none', guestSetsExitCode = false, eventsComplete, exit } = evidence;
  const { heardSince, intents } = evidence;
  const { hibernates, isPaused, shutdown } = timeline;
  const isOver = !isBroken(evidence) && isLongAfter(heardSince, shutdown?.at ?? null);
  const unheard: Cause[] = [];
  if (exit?.how !== 'exited' && guestSetsExitCode !== false && !isPaused) unheard.push('vmm-exit');
  if (isBroken(evidence)) {
    if (!hibernates) unheard.push('guest-hibernate');
    // It lingered, and may have been started again.
    if (isPaused) unheard.push(...ELSEWHERE, ...ORDERLY, ...KILLED);
  }
  if (agent === 'open' || agent === null) unheard.push('other-powerdown');
  if (agent !== 'none' && intents === null) unheard.push('admin-powerdown');
  if (!isOver && (!eventsComplete || wasIncoming)) {
    unheard.push('other-powerdown');
    if (!eventsComplete) unheard.push('watchdog-powerdown');
    if (wasIncoming || intents === null) unheard.push('admin-powerdown');
  }
  return unheard;
}

function byRequest(
  { verdict }: StopCase,
  requests: readonly Request[],
  otherwise: readonly Cause[],
): VmVerdict | null {
  const causes = causesOf(requests);
  const others: Cause[] = [...causes, ...otherwise];
  const last = requests.filter(({ fits }) => fits === 'likely').at(-1);
  if (last === undefined) return causes.length === 0 ? null : verdict.oneOf(others);
  switch (last.by) {
    case 'us':
      return verdict.likely('admin-powerdown', 'manager', others);
    case 'another':
      return verdict.likely('other-powerdown', 'host', others);
    case 'watchdog':
      return verdict.likely('watchdog-powerdown', 'guest', others);
    case null:
      return verdict.oneOf(others);
  }
}

function causesOf(requests: readonly Request[]): Cause[] {
  return requests.flatMap(({ by, mayBeOthers }) =>
    mayBeOthers ? REQUESTED.somebody : REQUESTED[by ?? 'somebody'],
  );
}
