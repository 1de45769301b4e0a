import type { Intent } from '../../process/intent-log.js';

import type { Timeline } from '../evidence/timeline.js';
import { ANSWER_MS } from '../control/vm-driver.js';

/** Clocks of two processes, and what writing takes. */
export const SLACK_MS = 1000;

/** How long a guest may take to obey a press, as far as anybody can tell who did not press. */
const OBEYS_WITHIN_MS = 120_000;

/**
 * And how long it takes at most, once nobody waits for it any more: it may install updates, or ask somebody
 * at its console. What comes later is another matter.
 */
export const MAY_TAKE_MS = 3_600_000;

/** One of the requests to power off that the guest had. */
export type Request = {
  /** Whose it was; `null`: ours or another's. */
  by: 'us' | 'another' | 'watchdog' | null;
  /** We were about to press, and may have been kept from it: then it was another's. */
  mayBeOthers: boolean;
  /** Whether it is what the guest has obeyed, by the time in between: nothing where that is out of question. */
  fits: 'likely' | 'perhaps';
};

/**
 * What the guest may have obeyed when it powered off, in its order: presses of its power button, and what we
 * have asked of its agent, which nobody tells of. `null` for intents: which of them were about it is not
 * known. `heardFrom`: from then on every press would have been heard, and nothing else could have had it
 * power off; `null`: that is not so.
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
      // It is pressed when it was written down, or not at all; then this one was another's.
      const soonMs = SLACK_MS + (intent.outcome === 'delivered' ? ANSWER_MS : 0);
      const time = at?.getTime() ?? -Infinity;
      const isLate = time > intent.at.getTime() + soonMs;
      // An intent is written down before it is carried out, and by the same clock.
      const isEarly = at !== null && time < intent.at.getTime();
      const isOurs = intent.outcome === 'delivered';
      add(isLate || isEarly ? null : 'us', at, intent.deadline.getTime(), !isOurs);
    } else {
      const by = byWatchdog ? 'watchdog' : intents === null ? null : 'another';
      add(by, at, at === null ? Infinity : at.getTime() + OBEYS_WITHIN_MS);
    }
  }
  for (const { at, deadline } of own) {
    // What we wanted when it was off already is hardly what it has obeyed.
    const isTooLate = obeyedAt !== null && at >= obeyedAt;
    const isUnheard = heardFrom !== null && at >= heardFrom;
    const isDoubtful = obeyedAt !== null && (isTooLate || isUnheard);
    add('us', at, isDoubtful ? obeyedAt.getTime() - SLACK_MS - 1 : deadline.getTime());
  }
  return found.sort((a, b) => a.at - b.at).map(({ request }) => request);
}

/** Whether no request from before then can have been what the guest has obeyed. */
export function isLongAfter(at: Date | null, obeyedAt: Date | null): boolean {
  if (at === null || obeyedAt === null) return false;
  return obeyedAt.getTime() > at.getTime() + OBEYS_WITHIN_MS + MAY_TAKE_MS;
}

/** We have asked for it since the machine was revived, if it was, and before it was obeyed. */
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
