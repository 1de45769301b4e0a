import type { VmVerdict } from '../../../src/vm';

import type { Evidence } from './evidence';
import { LATE_MS } from './interludes';
import { dateOf, type Machine } from './machine';
import type { Truth } from './truth';

export type Restart = { restart: boolean | null; because: string };

/** One verdict, and what it rests on. */
export interface Judged {
  evidence: Evidence;
  stop: VmVerdict;
  /** `null`: nobody has said anything of that yet. */
  restart: Restart | null;
}

export interface Finding {
  /** What was broken, in a word. */
  rule: string;
  judged: Judged;
  /** For two verdicts: the one that had less to go by. */
  less: Judged | null;
}

/** Of a machine that has left, migrated or saved, one name is as good as the other. */
const isRight = ({ causes }: Truth, { cause }: VmVerdict) => causes.includes(cause);

/** A right one names it; one that names nothing is not wrong. */
const isWrong = (truth: Truth, stop: VmVerdict) =>
  stop.cause !== 'unknown' && !isRight(truth, stop);

/** What is wrong with one verdict. */
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
  // Nobody has seen who sent that signal: then the hypervisor itself is not to be named.
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
  // One that was stopped may go on elsewhere: who starts it again may have two of it.
  const runs = evidence.events.filter(({ event }) => event === 'STOP' || event === 'RESUME');
  const mayGoOn = runs.at(-1)?.event === 'STOP' && evidence.lastStatus !== 'paused';
  if (restart?.restart === false && truth.restart === 'wanted' && !mayGoOn)
    rules.push('leaves what was killed');
  return rules.map((rule) => ({ rule, judged, less: null }));
}

/** Whether more evidence made it worse. `richer` has all that `poorer` has. */
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

/** Its user has powered it off when a press may have been on its way: nobody can tell, by that. */
function isUndecidable({ truth, events, end }: Machine, { intents }: Evidence): boolean {
  if (truth?.user === 'undecidable') return true;
  if (truth?.user !== true) return false;
  const shutdown = events.findLast(({ data }) => data['reason'] === 'guest-shutdown');
  const at = dateOf(shutdown?.at ?? 0).getTime();
  // Without events nobody knows which of the two was first.
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
