import type { Intent } from '../../process/intent-log.js';

import type { Timeline } from '../evidence/timeline.js';
import { ANSWER_MS } from '../control/vm-driver.js';

/** For differences between two clocks, and for the time that writing takes. */
export const SLACK_MS = 1000;

/** How long a guest may take to obey a press whose deadline we do not know. */
const OBEYS_WITHIN_MS = 120_000;

/**
 * How long after the deadline a guest may still obey: it may install updates, or ask somebody at
 * its console. A later power-off has another cause.
 */
export const MAY_TAKE_MS = 3_600_000;

/** One request to the guest to power off. */
export type Request = {
  /** Who asked; `null`: we or somebody else. */
  by: 'us' | 'another' | 'watchdog' | null;
  /** We intended to press, but may not have: then the press was somebody else's. */
  mayBeOthers: boolean;
  /** How well its time fits what the guest obeyed; a request that cannot fit is left out. */
  fits: 'likely' | 'perhaps';
};

/**
 * Requests that the guest may have obeyed when it powered off, in order: presses of its power
 * button, and our requests to its agent, which no event reports. `intents` is `null` if it is
 * unknown which of them concern this machine. From `heardFrom` on, every press was heard, and
 * nothing else could have powered the guest off; `null`: that is not certain.
 */
export function requestsBefore(
  { presses, shutdown, since }: Timeline,
  intents: readonly Intent[] | null,
  endedAt: Date | null,
  heardFrom: Date | null,
): Request[] {
  const obeyedAt = shutdown?.at ?? endedAt;
  const own = (intents ?? []).filter((intent) => isOf(intent, since, obeyedAt));
  const found: { request: Request; at: number }[] = [];
  const add = (by: Request['by'], at: Date | null, until: number, mayBeOthers = false) => {
    const fits = fitsAt(until, obeyedAt);
    if (fits === null) return;
    found.push({ request: { by, mayBeOthers, fits }, at: at?.getTime() ?? -Infinity });
  };
  for (const { at, byWatchdog } of presses) {
    const ours = byWatchdog ? -1 : own.findIndex((intent) => isPressOf(intent, at));
    const [intent] = ours === -1 ? [] : own.splice(ours, 1);
    if (intent !== undefined) {
      // A press follows its intent at once or not at all: a later one may be somebody else's.
      const soonMs = SLACK_MS + (intent.outcome === 'delivered' ? ANSWER_MS : 0);
      const time = at?.getTime() ?? -Infinity;
      const isLate = time > intent.at.getTime() + soonMs;
      // An intent is written down before it is carried out, and both times are by the same clock.
      const isEarly = at !== null && time < intent.at.getTime();
      const isOurs = intent.outcome === 'delivered';
      add(isLate || isEarly ? null : 'us', at, intent.deadline.getTime(), !isOurs);
    } else {
      const by = byWatchdog ? 'watchdog' : intents === null ? null : 'another';
      add(by, at, at === null ? Infinity : at.getTime() + OBEYS_WITHIN_MS);
    }
  }
  for (const { at, deadline } of own) {
    // A guest hardly obeys a request that we made after it was off.
    const isTooLate = obeyedAt !== null && at >= obeyedAt;
    const isUnheard = heardFrom !== null && at >= heardFrom;
    const isDoubtful = obeyedAt !== null && (isTooLate || isUnheard);
    add('us', at, isDoubtful ? obeyedAt.getTime() - SLACK_MS - 1 : deadline.getTime());
  }
  return found.sort((a, b) => a.at - b.at).map(({ request }) => request);
}

/** Whether every request from before `at` is too old to be what the guest obeyed. */
export function isLongAfter(at: Date | null, obeyedAt: Date | null): boolean {
  if (at === null || obeyedAt === null) return false;
  return obeyedAt.getTime() > at.getTime() + OBEYS_WITHIN_MS + MAY_TAKE_MS;
}

/**
 * Whether we asked for a power-down since the machine was revived, if it was, and before it obeyed.
 */
function isOf({ what, at, outcome }: Intent, since: Date | null, obeyedAt: Date | null): boolean {
  const time = at.getTime();
  return (
    what === 'powerdown' &&
    outcome !== 'not-delivered' &&
    outcome !== 'superseded' &&
    time >= (since?.getTime() ?? -Infinity) - SLACK_MS &&
    time <= (obeyedAt?.getTime() ?? Infinity) + SLACK_MS
  );
}

function isPressOf({ at, deadline }: Intent, pressedAt: Date | null): boolean {
  if (pressedAt === null) return true;
  const time = pressedAt.getTime();
  return time >= at.getTime() - SLACK_MS && time <= deadline.getTime() + SLACK_MS;
}

function fitsAt(until: number, obeyedAt: Date | null): Request['fits'] | null {
  const time = obeyedAt?.getTime() ?? -Infinity;
  if (time <= until + SLACK_MS) return 'likely';
  return time <= until + MAY_TAKE_MS ? 'perhaps' : null;
}
