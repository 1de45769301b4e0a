import { requestBefore } from '../../../events/ended-by.js';
import type { ExitEvent } from '../../../events/exit-event.js';
import { KILLED, ORDERLY } from '../causes.js';
import { SHUTDOWN_SIGNALS } from '../own-doing.js';
import type { StopCase } from '../stop-case.js';
import type { Cause, VmVerdict } from '../vm-verdict.js';

/** It exited, or nobody saw how it ended; no shutdown event explains it. */
export function byExit(one: StopCase): VmVerdict | null {
  const { exit, eventsComplete, obeyed } = one.evidence;
  const isSeen = exit?.how === 'exited';
  if (isSeen && exit.exitCode !== 0) return byError(one);
  if (obeyed !== null && (isSeen || !one.hasLeftAll)) {
    return one.afterwards('forced-stop', one.initiatorOfRequest);
  }
  if (!isSeen) return byLeftovers(one);
  // A full disk swallows the last event of an event log.
  if (eventsComplete) {
    return one.oneOf(['guest-watchdog', 'vmm-exit', 'start-exited', 'guest-shutdown']);
  }
  return byOrderlyExit(one, exit);
}

/** It exited with an error. */
function byError(one: StopCase): VmVerdict {
  const { events, eventsComplete, initialPhase, ready } = one.evidence;
  const { hasRun } = one.timeline;
  // A hypervisor reports that it runs before it is ready: if it never ran, it was never ready, even
  // if it greeted us.
  const hasHeard = eventsComplete || initialPhase !== null || one.wasIncoming;
  const neverRan = !hasRun && hasHeard;
  if (neverRan || ready !== true) {
    return one.likely('start-failed', 'vmm', ['vmm-exit', 'guest-panic']);
  }
  if (eventsComplete && one.before.length === 0) return one.verdict.sure('vmm-exit', 'vmm');
  const causes: Cause[] = ['vmm-exit', 'guest-panic', 'start-failed'];
  return hasHeard || events.length > 0 ? one.likely('vmm-exit', 'vmm', causes) : one.oneOf(causes);
}

/** Nobody saw how it ended, and no event explains it. A log, if any, may be of an earlier start. */
function byLeftovers(one: StopCase): VmVerdict | null {
  const { eventsComplete, leftovers, obeyed } = one.evidence;
  const exited: Cause[] = ['vmm-exit', 'guest-watchdog', 'start-failed'];
  if (one.hasLeftAll) {
    if (obeyed !== null) return one.oneOf([...KILLED, 'forced-stop']);
    return one.own.of('SIGKILL') === null || !eventsComplete
      ? one.oneOf(KILLED)
      : one.likely('killed', 'manager', KILLED);
  }
  if (!eventsComplete) return null;
  if (leftovers.pidfile === false && leftovers.socket === true) return one.oneOf(exited);
  // A full disk may have swallowed its last event.
  return one.oneOf([...KILLED, ...exited, 'guest-shutdown']);
}

/** It exited with 0, and neither an event nor its log says why. */
function byOrderlyExit(one: StopCase, exit: ExitEvent): VmVerdict {
  const orderly = (...without: Cause[]) => ORDERLY.filter((cause) => !without.includes(cause));
  const request = requestBefore(exit);
  const own = SHUTDOWN_SIGNALS.some((signal) => one.own.of(signal) !== null);
  if (request !== null && !own && one.wasAsked) return one.oneOf(orderly());
  if (request !== null || own) {
    const initiator = own ? 'manager' : one.initiatorOf(request, 'SIGTERM', exit.pid);
    // It may have shut down by itself just before.
    return one.likely('forced-stop', initiator, orderly());
  }
  const without = one.hasSeenSignals(exit) ? orderly('forced-stop') : orderly();
  if (one.own.of('quit') !== null) return one.likely('manager-quit', 'manager', without);
  if (one.wasAsked) return one.likely('admin-powerdown', 'manager', without);
  return one.oneOf(without);
}
