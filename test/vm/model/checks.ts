import type { VmVerdict } from '../../../src/vm';

import type { Evidence } from './evidence';
import { LATE_MS } from './interludes';
import { dateOf, type Machine } from './machine';
import type { Truth } from './truth';

export type Restart = { restart: boolean | null; because: string };

/** A verdict and its evidence. */
export interface Judged {
  evidence: Evidence;
  stop: VmVerdict;
  /** `null`: there is no answer yet. */
  restart: Restart | null;
}

export interface Finding {
  /** The rule that was broken, in a phrase. */
  rule: string;
  judged: Judged;
  /** If two verdicts are compared: the one with less evidence. */
  less: Judged | null;
}

/** For a machine that was migrated or saved, either name is right. */
const isRight = ({ causes }: Truth, { cause }: VmVerdict) => causes.includes(cause);

/** A verdict that names no cause is not wrong. */
const isWrong = (truth: Truth, stop: VmVerdict) =>
  stop.cause !== 'unknown' && !isRight(truth, stop);

/** The rules that one verdict breaks. */
export function check(machine: Machine, judged: Judged): Finding[] {
  const { truth } = machine;
  if (truth === null) throw new Error('it has no truth');
  const { stop, restart, evidence } = judged;
  const { cause, certainty, candidates, initiator, userShutdown } = stop;
  const names: readonly string[] = candidates;
  const rules: string[] = [];
  if (isUndecidable(machine, evidence)) {
    if (certainty === 'sure' && truth.user === 'undecidable') rules.push('sure of the undecidable');
    if (restart?.restart === true) rules.push('restarts what its user has shut down, perhaps');
    return rules.map((rule) => ({ rule, judged, less: null }));
  }
  const isSure = certainty === 'sure';
  if (isSure && !isRight(truth, stop)) rules.push('sure of a wrong cause');
  else if (isSure && initiator !== 'unknown' && !truth.initiators.includes(initiator)) {
    rules.push('sure of a wrong initiator');
  }
  // If nobody saw the sender of the signal, the hypervisor itself must not be named.
  if (!isSure && initiator === 'vmm' && machine.end?.how === 'killed' && isAttack(truth)) {
    if (cause === 'vmm-crash') rules.push('blames the hypervisor for a signal of others');
  }
  if (certainty !== 'unknown' && !truth.causes.some((each) => names.includes(each))) {
    rules.push('the truth is not among the candidates');
  }
  if (cause !== 'unknown' && !candidates.includes(cause)) rules.push('its cause is no candidate');
  if (userShutdown === true && truth.user === false) rules.push("says user's, and is not");
  if (userShutdown === false && truth.user === true) rules.push("says not user's, and is");
  if (restart?.restart === true && truth.restart === 'never')
    rules.push('restarts what must not be');
  // A stopped machine may go on elsewhere: a restart could make it run twice.
  const runs = evidence.events.filter(({ event }) => event === 'STOP' || event === 'RESUME');
  const mayGoOn = runs.at(-1)?.event === 'STOP' && evidence.lastStatus !== 'paused';
  if (restart?.restart === false && truth.restart === 'wanted' && !mayGoOn)
    rules.push('leaves what was killed');
  return rules.map((rule) => ({ rule, judged, less: null }));
}

/**
 * Checks that more evidence does not make a verdict worse. `richer` has everything that `poorer`
 * has.
 */
export function checkMonotony(machine: Machine, richer: Judged, poorer: Judged): Finding[] {
  const { truth } = machine;
  if (truth === null || isUndecidable(machine, richer.evidence)) return [];
  const isMisled = isRight(truth, poorer.stop) && isWrong(truth, richer.stop);
  if (!isMisled) return [];
  const isWorst = poorer.stop.certainty === 'sure' || richer.stop.certainty === 'sure';
  const rule = isWorst ? 'more evidence turns sure to wrong' : 'more evidence turns right to wrong';
  return [{ rule, judged: richer, less: poorer }];
}

const isAttack = ({ causes }: Truth) => causes[0] === 'killed';

/**
 * The user powered off when a press may still have been on its way: the evidence cannot show which
 * of the two counted.
 */
function isUndecidable({ truth, events, end }: Machine, { intents }: Evidence): boolean {
  if (truth?.user === 'undecidable') return true;
  if (truth?.user !== true) return false;
  const shutdown = events.findLast(({ data }) => data['reason'] === 'guest-shutdown');
  const at = dateOf(shutdown?.at ?? 0).getTime();
  // Without events the order of the two is unknown.
  const until = dateOf(end?.at ?? 0).getTime();
  const isLive = (intent: { at: Date }) =>
    intent.at.getTime() <= until && at - intent.at.getTime() <= LATE_MS;
  return (
    intents?.some(
      (each) =>
        each.what === 'powerdown' &&
        each.outcome !== 'not-delivered' &&
        each.outcome !== 'superseded' &&
        isLive(each),
    ) ?? false
  );
}
