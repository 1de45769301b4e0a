// Lane: unit

import * as vm from '../../src/vm';

import { check, checkMonotony, type Judged } from './model/checks';
import { claimsOf } from './model/claims';
import { evidenceOf, type Evidence } from './model/evidence';
import { playHistory } from './model/history';
import { Random } from './model/random';
import { describeHistory, Findings } from './model/report';
import { chainOf } from './model/views';

/**
 * Checks the rules against machines that were never run. The model knows the truth about each, and
 * shares no code with the rules. If a rule is wrong, the first of these tests prints the history
 * that shows it. Errors too rare for some thousands of histories show up in a million.
 */

/** A million takes about five minutes. */
const HISTORIES = Number(process.env['EXITWATCH_HISTORIES'] ?? 5000);
const FIRST_SEED = Number(process.env['EXITWATCH_SEED'] ?? 1);

/** Prints every class of findings, and the speed. */
const REPORTS = process.env['EXITWATCH_MODEL_REPORT'] === '1';

const shouldRestart = 'shouldRestart' in vm ? vm.shouldRestart : null;

function judge(evidence: Evidence): Judged {
  const stop = vm.classifyStop(evidence);
  return { evidence, stop, restart: shouldRestart?.(stop) ?? null };
}

/** The witnesses cannot tell these two apart. */
const LEFT: readonly string[] = ['migrated-away', 'saved'];

/** Errors that are unavoidable but worth knowing. */
const counts = new Map<string, number>();
const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);

function play(seed: number, findings: Findings): void {
  const machine = playHistory(seed);
  const chain = chainOf(machine, new Random(-seed));
  const verdicts = chain.map((view) => judge(evidenceOf(machine, view)));
  for (const [index, judged] of verdicts.entries()) {
    const { certainty, cause } = judged.stop;
    count(certainty);
    const [truth = 'unknown'] = machine.truth?.causes ?? [];
    if (certainty === 'sure' && truth !== cause && LEFT.includes(cause)) {
      count(`sure of ${cause}, and was ${truth}`);
    }
    for (const each of check(machine, judged)) findings.add(seed, machine, '', each);
    for (const poorer of verdicts.slice(index + 1)) {
      for (const each of checkMonotony(machine, judged, poorer)) {
        findings.add(seed, machine, '', each);
      }
    }
  }
  const [view] = chain;
  const [best] = verdicts;
  if (view === undefined || best === undefined) return;
  // What is also wrong without the false claim is not its fault.
  const known = new Set(check(machine, best).map(({ rule }) => rule));
  for (const { name, evidence, isDetectable } of claimsOf(machine, view)) {
    for (const each of check(machine, judge(evidence))) {
      if (known.has(each.rule)) continue;
      if (isDetectable) findings.add(seed, machine, name, each);
      else count(`${name}: ${each.rule}`);
    }
  }
}

test(
  'no verdict on machines that end in any way, with all or few witnesses, claims anything false',
  () => {
    const findings = new Findings();
    const startedAt = performance.now();
    for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed++) play(seed, findings);
    const list = findings.list();
    if (REPORTS) {
      const perSecond = Math.round((HISTORIES / (performance.now() - startedAt)) * 1000);
      const lines = [
        `${HISTORIES} histories, ${perSecond} a second`,
        ...[...counts].map(([what, times]) => `${times} × ${what}`),
        ...list.map(({ count: times, text }) => `\n${times} × ${text}`),
      ];
      process.stdout.write(`${lines.join('\n')}\n`);
    }
    expect(list.slice(0, 10).map(({ count: times, text }) => `${times} × ${text}`)).toEqual([]);
  },
  60_000 + HISTORIES * 10,
);

test('a seed always plays the same history', () => {
  for (let seed = 0; seed < 50; seed++) {
    const [one, other] = [playHistory(seed), playHistory(seed)];
    expect(describeHistory(one)).toEqual(describeHistory(other));
    expect(one.events).toEqual(other.events);
  }
});

test('every history ends with a known truth, and its clock never runs backwards', () => {
  for (let seed = 0; seed < 2000; seed++) {
    const { end, truth, events } = playHistory(seed);
    expect(end).not.toBeNull();
    expect(truth).not.toBeNull();
    const times = [0, ...events.map(({ at }) => at), end?.at ?? 0];
    expect(times).toEqual([...times].sort((one, other) => one - other));
  }
});

test('a poorer view has no events that a richer one lacks', () => {
  for (let seed = 0; seed < 500; seed++) {
    const machine = playHistory(seed);
    const chain = chainOf(machine, new Random(seed)).map((view) => evidenceOf(machine, view));
    for (const [index, less] of chain.entries()) {
      const more = chain[index - 1] ?? less;
      expect(more.events).toEqual(expect.arrayContaining([...less.events]));
      expect(more.eventsComplete || !less.eventsComplete).toBe(true);
    }
  }
});
