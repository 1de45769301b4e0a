import {
  checkAbortSignal,
  checkBoolean,
  checkDate,
  checkInteger,
  checkOptionNames,
  invalidOption,
} from '../common/options.js';
import { NamePattern } from '../common/name-pattern.js';
import { toJsonLine } from '../common/safe-text.js';
import type { ExitEvent } from '../events/exit-event.js';
import { ownedName } from '../where/owned-name.js';
import { isInContainer, isInUnit } from '../where/whereabouts.js';

import { checkDir } from './journal-options.js';
import { type JournalRow, timeOf } from './rows.js';
import { enderOf, isOfSegment, namesOf, SHORT_ID, term, type TermSet } from './terms.js';

/**
 * Which rows {@link readJournal} yields: ends that match everything that is given, and all gaps.
 *
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export interface JournalQuery {
  /** The directory of the journal. */
  dir: string;
  /** Only what happened at this time or later, by the wall clock of then; not later than `until`. */
  since?: Date;
  /** Only what happened at this time or earlier. */
  until?: Date;
  /** The kernel's name or the program's; may contain `*`, `?` and `[a-z]`. */
  name?: string;
  pid?: number;
  /**
   * A unit of systemd that it ran in, or in something below it: `nginx.service` of the system, or
   * `1000:nginx.service` of the manager of the user 1000. Others may give their cgroups any name.
   */
  unit?: string;
  /**
   * The container that it ran in: its name, its id, or the first digits of its id: at least 4. `1000:ID` is a
   * container that the user 1000 runs without privileges. Not one inside another container or machine: what is
   * in one belongs to the outermost one.
   */
  container?: string;
  /** Who ended it, by a signal that killed it or that asked it to exit: a name or a pid. */
  killedBy?: string | number;
  /** Then waits for more rows, and never ends by itself. */
  follow?: boolean;
  /** Ends the loop when aborted. */
  signal?: AbortSignal;
}

const NAMES = [
  ...(['dir', 'since', 'until', 'name', 'pid', 'unit', 'container', 'killedBy'] as const),
  ...(['follow', 'signal'] as const),
];

const MOST_PID = 2 ** 31 - 1;

/** What must hold for an end, and how to see from afar that it does not. */
interface Criterion {
  matches: (exit: ExitEvent) => boolean;
  /** At least one of these is in the set of its block; `null`: any may be. */
  terms: string[] | null;
  /** At least one of these is in its line; `null`: anything may be. */
  texts: string[] | null;
}

/** Which rows: `'others'` are no ends. */
export type RowKind = 'all' | 'ends' | 'others';

/** A query, ready to be asked of blocks, lines and rows. */
export class Query {
  readonly dir: string;
  readonly follow: boolean;
  readonly signal: AbortSignal | undefined;
  readonly #since: number;
  readonly #until: number;
  /** Those that usually fewer rows match come first. */
  readonly #criteria: readonly Criterion[];
  /** What to look for in the bytes of a block; `null`: every line may match. */
  readonly texts: readonly Buffer[] | null;

  readonly #kind: RowKind;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: unknown, kind: RowKind = 'all') {
    this.#kind = kind;
    const checked = checkOptionNames(options, NAMES);
    this.dir = checkDir(checked.dir);
    this.follow = checkBoolean('follow', checked.follow ?? false);
    this.signal = checkAbortSignal(checked.signal);
    this.#since = timeIn('since', checked.since) ?? -Infinity;
    this.#until = timeIn('until', checked.until) ?? Infinity;
    this.#criteria = [
      byPid(checked.pid),
      byContainer(checkText('container', checked.container)),
      byName(checkText('name', checked.name)),
      byUnit(checkText('unit', checked.unit)),
      byKiller(checked.killedBy),
    ].filter((criterion) => criterion !== null);
    this.texts = this.#textsToFind()?.map((text) => Buffer.from(text)) ?? null;
  }

  /** Whether there is no time at which something could match. */
  get isNever(): boolean {
    return this.#since > this.#until;
  }

  #textsToFind(): string[] | null {
    if (this.#kind === 'others') return OTHERS;
    const texts = this.#criteria.find((criterion) => criterion.texts !== null)?.texts ?? null;
    return this.#kind === 'ends' || texts === null ? texts : [...texts, ...OTHERS];
  }

  /** Whether rows of this time may match. */
  isInTime(from: number, to: number): boolean {
    return to >= this.#since && from <= this.#until;
  }

  /** Whether a block with these terms may have a row that matches. */
  mayBeIn(terms: TermSet): boolean {
    return this.#mayMatch((text) => terms.mayHave(text));
  }

  /** The same of a whole segment. */
  mayBeInSegment(terms: TermSet): boolean {
    return this.#mayMatch((text) => !isOfSegment(text) || terms.mayHave(text));
  }

  #mayMatch(mayHave: (text: string) => boolean): boolean {
    if (this.#kind !== 'ends' && mayHave(term.other())) return true;
    if (this.#kind === 'others') return false;
    return this.#criteria.every((each) => each.terms?.some(mayHave) ?? true);
  }

  /** Whether the row in this line may match, without parsing it. */
  mayBe(line: string): boolean {
    return this.#mayBeInTime(line) && (this.#hasTexts(line) || this.#mayBeOther(line));
  }

  #hasTexts(line: string): boolean {
    return this.#criteria.every(({ texts }) => texts?.some((text) => line.includes(text)) ?? true);
  }

  #mayBeOther(line: string): boolean {
    return this.#kind !== 'ends' && OTHERS.some((text) => line.includes(text));
  }

  #mayBeInTime(line: string): boolean {
    if (this.#since === -Infinity && this.#until === Infinity) return true;
    const start = line.indexOf(AT);
    if (start < 0) return true;
    const at = Date.parse(line.slice(start + AT.length, line.indexOf('"', start + AT.length)));
    return this.isInTime(at, at);
  }

  matches(row: JournalRow): boolean {
    const to = timeOf(row).getTime();
    const from = row.event === 'gap' || row.event === 'skipped' ? row.from.getTime() : to;
    if (!this.isInTime(from, to)) return false;
    if (row.event !== 'exit') return this.#kind !== 'ends';
    return this.#kind !== 'others' && this.#criteria.every((criterion) => criterion.matches(row));
  }
}

const AT = '"exitedAt":"';

/** The beginnings of rows that are no ends. */
const OTHERS = ['"event":"gap"', '"event":"source"', '"event":"skipped"'];

function byName(glob: string | undefined): Criterion | null {
  if (glob === undefined) return null;
  const pattern = new NamePattern([glob]);
  const names = pattern.literals;
  return {
    matches: (exit) => pattern.matches(namesOf(exit)),
    terms: names?.map(term.name) ?? null,
    texts: names?.map((name) => `:${toJsonLine(name)}`) ?? null,
  };
}

function byPid(pid: unknown): Criterion | null {
  if (pid === undefined) return null;
  const checked = checkInteger('pid', pid, 1, MOST_PID);
  return {
    matches: (exit) => exit.pid === checked,
    terms: [term.pid(checked)],
    texts: [`"pid":${checked},`],
  };
}

function byUnit(unit: string | undefined): Criterion | null {
  if (unit === undefined) return null;
  const { uid, name } = ownedName(unit);
  return {
    matches: ({ cgroup }) => isInUnit(cgroup, uid, (each) => each === name),
    terms: [term.unit(name)],
    texts: [toJsonLine(name).slice(1, -1)],
  };
}

const DIGITS = /^[0-9a-z]{4,64}$/;

function byContainer(text: string | undefined): Criterion | null {
  if (text === undefined) return null;
  const { uid, name } = ownedName(text);
  const isId = DIGITS.test(name);
  const idTerm = name.length < SHORT_ID ? term.containerStart : term.container;
  const terms = [term.containerName(text), ...(isId ? [idTerm(name)] : [])];
  return {
    matches: (exit) =>
      exit.container?.name === text ||
      (isId && isInContainer(exit, uid, (id) => id.startsWith(name))),
    terms,
    texts: [toJsonLine(name).slice(1, -1)],
  };
}

function byKiller(killer: unknown): Criterion | null {
  if (killer === undefined) return null;
  if (typeof killer === 'number') {
    const pid = checkInteger('killedBy', killer, 1, MOST_PID);
    return {
      matches: (exit) => enderOf(exit)?.pid === pid,
      terms: [term.killerPid(pid)],
      texts: [`"pid":${pid},`],
    };
  }
  const pattern = new NamePattern([checkText('killedBy', killer) ?? '']);
  const names = pattern.literals;
  return {
    matches: (exit) => {
      const ender = enderOf(exit);
      return ender?.pid != null && pattern.matches(namesOf(ender));
    },
    terms: names?.map(term.killerName) ?? null,
    texts: names?.map((name) => `:${toJsonLine(name)}`) ?? null,
  };
}

function checkText(name: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === 'string' && value !== '')) return value;
  throw invalidOption(`${name} must be a string that is not empty`);
}

function timeIn(name: string, value: unknown): number | undefined {
  const at = checkDate(name, value)?.getTime();
  if (Number.isNaN(at)) throw invalidOption(`${name} must be a valid Date`);
  return at;
}
