import type { Finding, Judged } from './checks';
import { describeTime, type Machine } from './machine';

/** A class of findings with its simplest history. */
export interface FindingClass {
  name: string;
  count: number;
  seed: number;
  length: number;
  text: string;
}

/** Findings by broken rule, the machine's end, and the verdict. */
export class Findings {
  readonly classes = new Map<string, FindingClass>();

  add(seed: number, machine: Machine, source: string, { rule, judged, less }: Finding): void {
    const { cause, certainty } = judged.stop;
    const said = cause === 'unknown' ? certainty : `${certainty}: ${cause}`;
    const end = [machine.ending, ...labelsOf(machine)].join(', ');
    const by = source === '' ? '' : ` (${source})`;
    const name = `${rule}: ${end}${by}, said ${said}`;
    const known = this.classes.get(name);
    if (known !== undefined) known.count++;
    const length = lengthOf(machine, judged);
    if (known !== undefined && known.length <= length) return;
    const text = [
      `seed ${seed}: ${name}`,
      ...describeHistory(machine),
      ...(less === null ? [] : ['with less evidence:', ...describeJudged(less), 'with more:']),
      ...describeJudged(judged),
    ].join('\n    ');
    this.classes.set(name, { name, count: known?.count ?? 1, seed, length, text });
  }

  /** The most frequent first. */
  list(): FindingClass[] {
    return [...this.classes.values()].sort((one, other) => other.count - one.count);
  }
}

/** Labels that make an end a different one. */
const TELLING_LABELS = [
  'reset before it obeyed',
  'obeyed late',
  'pressed again',
  'paused before it went',
  'stopped too late',
  'pressed too late',
  'was busy',
  'lingered',
  'unannounced',
];

function labelsOf({ labels }: Machine): string[] {
  return TELLING_LABELS.filter((label) => labels.has(label)).slice(0, 1);
}

/** The simplest history is the shortest one, judged with the least evidence. */
function lengthOf(machine: Machine, { evidence }: Judged): number {
  return machine.words.length * 10 + machine.labels.size + evidence.events.length;
}

function wordOf({ reason, status, action }: Record<string, unknown>): string {
  const word = reason ?? status ?? action;
  return typeof word === 'string' ? word : '';
}

export function describeHistory(machine: Machine): string[] {
  const { options, truth, end, labels } = machine;
  const set = Object.entries(options).flatMap(([name, value]) => {
    if (value === false || value === null) return [];
    return value === true ? [name] : [`${name}=${String(value)}`];
  });
  const how =
    end?.how === 'killed' ? `is killed by ${end.signal}` : `exits with ${end?.exitCode ?? 0}`;
  return [
    `machine: ${set.join(', ')}`,
    ...machine.words,
    `${describeTime(end?.at ?? 0)} it ${how}`,
    `truth: ${truth?.causes.join(' or ') ?? ''}, by ${truth?.initiators.join(' or ') ?? ''}, user: ${String(truth?.user)}, restart: ${truth?.restart ?? ''} [${[...labels].join('; ')}]`,
  ];
}

function describeJudged({ evidence, stop, restart }: Judged): string[] {
  const { exit, events, intents, leftovers, obeyed, ...rest } = evidence;
  const zero = exit?.startedAt?.getTime() ?? events[0]?.at?.getTime() ?? 0;
  const seconds = (at: Date | null) => ((at?.getTime() ?? 0) - zero) / 1000;
  const told = events.map(({ event, data, at }) => `${seconds(at)} ${event} ${wordOf(data)}`);
  const owned = intents?.map(
    ({ what, at, deadline, outcome }) =>
      `${what} ${seconds(at)} to ${seconds(deadline)} ${outcome}`,
  );
  const sent = exit?.signalsReceived.map(({ signal, pid }) => `${signal} from ${pid ?? 'kernel'}`);
  const status = exit === null ? 'not seen' : `${exit.how} ${exit.exitCode ?? exit.signal ?? ''}`;
  return [
    `events: ${told.map((each) => each.trim()).join(', ')}`,
    `intents: ${owned === undefined ? 'not known' : owned.join(', ')}`,
    `exit: ${status}, traced: ${String(exit?.traced)}, signals: ${sent?.join(', ') ?? ''}, oom: ${String(exit?.oom)}`,
    Object.entries({ ...rest, ...leftovers, obeyed: obeyed?.signal ?? null })
      .filter(([name]) => name !== 'name')
      .map(([name, value]) => `${name}: ${String(value)}`)
      .join(', '),
    `verdict: ${stop.cause}, ${stop.certainty}, user: ${String(stop.userShutdown)}, by ${stop.initiator}, candidates: ${stop.candidates.join(', ')}${restart === null ? '' : `, restart: ${String(restart.restart)} (${restart.because})`}`,
  ];
}
