import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';

import { ExitwatchError } from '../common/errors.js';

import type { ProcessRow, ProcessTable, Lookup } from './process-table.js';

type Column = 'pid' | 'ppid' | 'uid' | 'stat' | 'lstart' | 'etime' | 'comm';

/** What each variant of ps can print. `comm` comes last because it may contain spaces. */
const FORMS: readonly (readonly Column[])[] = [
  ['pid', 'ppid', 'uid', 'stat', 'lstart', 'comm'], // macOS, the BSDs, procps
  ['pid', 'ppid', 'uid', 'stat', 'etime', 'comm'], // toybox
  ['pid', 'ppid', 'stat', 'comm'], // busybox
];

const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';

/** A start computed from an age in seconds varies by a second either way, and so may our clock. */
const START_TOLERANCE = 200;

const LIMITS = { timeout: 10_000, maxBuffer: 64 * 1024 * 1024 };

const run = promisify(execFile);

/** macOS, the BSDs and others: runs ps once for all processes. */
export class PsTable implements ProcessTable {
  readonly by = 'ps';
  readonly startTolerance = START_TOLERANCE;
  readonly #command: readonly string[];
  #form: number | undefined;

  /** `command` replaces the ps from PATH. */
  constructor(command: readonly string[] = ['ps']) {
    this.#command = command;
  }

  lookNow(pid: number): Lookup | null {
    return (
      this.#tryForms((form) => {
        const [file, args, options] = this.#call(form);
        return parsePs(execFileSync(file, args, { ...options, stdio: 'pipe' }), form, Date.now());
      }).get(pid) ?? null
    );
  }

  async look(): Promise<Map<number, Lookup>> {
    return this.list();
  }

  async list(): Promise<Map<number, Lookup>> {
    if (this.#form === undefined) this.lookNow(process.pid);
    const form = FORMS[this.#form ?? 0] ?? [];
    const [file, args, options] = this.#call(form);
    const { stdout } = await run(file, args, options);
    return parsePs(stdout, form, Date.now());
  }

  startTime(startTicks: number): Date {
    return new Date(startTicks * 10);
  }

  #call(form: readonly Column[]) {
    const [file = 'ps', ...before] = this.#command;
    const columns = form.flatMap((column) => ['-o', `${column}=`]);
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC0' };
    return [file, [...before, '-A', ...columns], { ...LIMITS, env, encoding: 'utf8' }] as const;
  }

  /** Remembers the first form that this ps understands. */
  #tryForms(read: (form: readonly Column[]) => Map<number, Lookup>): Map<number, Lookup> {
    const first = this.#form ?? 0;
    const last = this.#form ?? FORMS.length - 1;
    let cause: unknown;
    for (let index = first; index <= last; index++) {
      try {
        const table = read(FORMS[index] ?? []);
        this.#form = index;
        return table;
      } catch (error) {
        cause = error;
        // It could not be run, which says nothing about the forms that it understands.
        if (typeof (error as NodeJS.ErrnoException).code === 'string') break;
      }
    }
    throw new ExitwatchError(
      'ERR_EXITWATCH_NO_PS',
      'ps cannot be run, or its output is not a process table',
      {
        cause,
        remedy: 'install ps (procps on Linux), and make sure that it is in PATH',
      },
    );
  }
}

/**
 * The output of ps by pid. Throws if it is not a process table.
 *
 * A name may contain line breaks, and comes last: what follows a row and is none belongs to its name.
 * A line that begins like a row, and cannot be read, or repeats a pid, makes that pid unknown.
 * @internal
 */
export function parsePs(
  output: string,
  form: readonly Column[],
  nowMs: number,
): Map<number, Lookup> {
  const table = new Map<number, Lookup>();
  let rows = 0;
  let unread = 0;
  let last: ProcessRow | undefined;
  for (const line of output.split('\n')) {
    if (line.trim() === '') continue;
    const row = parseLine(line, form, nowMs);
    const pid = row?.pid ?? number(/^\s*(\S+)/.exec(line)?.[1] ?? '');
    if (row !== null) rows++;
    else if (!Number.isNaN(pid)) unread++;
    else if (last !== undefined) last.name = null;
    // What ps says instead of a table, or rows of another form.
    if (rows === 0 || unread > rows)
      throw new Error(`unexpected line from ps: ${JSON.stringify(line.slice(0, 200))}`);
    if (Number.isNaN(pid)) continue;
    last = row ?? undefined;
    table.set(pid, row === null || table.has(pid) ? 'unknown' : row);
  }
  if (table.size === 0) throw new Error('ps printed nothing');
  return table;
}

function parseLine(line: string, form: readonly Column[], nowMs: number): ProcessRow | null {
  const words = line.trim().split(/\s+/);
  const row: ProcessRow = {
    pid: NaN,
    parentPid: null,
    groupId: null,
    sessionId: null,
    name: null,
    uid: null,
    startTicks: null,
    isDead: false,
    isKernelThread: false,
  };
  for (const column of form) {
    const word = words.shift() ?? '';
    switch (column) {
      case 'pid':
        row.pid = number(word);
        break;
      case 'ppid':
        row.parentPid = number(word);
        break;
      case 'uid':
        row.uid = number(word);
        break;
      case 'stat':
        // `Zl`: only the first thread is dead, which can happen on Linux.
        row.isDead = /^[ZX]/.test(word) && !word.includes('l');
        break;
      case 'lstart':
        // OpenBSD prints no start for zombies.
        row.startTicks = word === '-' ? null : parseDate(words.splice(0, 4)) / 10;
        break;
      case 'etime':
        row.startTicks = Math.round((nowMs - parseAge(word) * 1000) / 10);
        break;
      case 'comm':
        row.name = baseName([word, ...words].join(' '));
        break;
    }
  }
  const numbers = [row.pid, row.parentPid ?? 0, row.uid ?? 0, row.startTicks ?? 0];
  return numbers.every(Number.isFinite) ? row : null;
}

/** User ids can be negative on macOS: nobody is -2. */
function number(word: string): number {
  return /^-?\d+$/.test(word) ? Number(word) : NaN;
}

/**
 * Parses `Sat Nov 21 07:34:39 2026` without its first word, as UTC. Some systems print the day
 * first.
 */
function parseDate([first = '', second = '', time = '', year = '']: readonly string[]): number {
  const [month, day] = /^\d/.test(first) ? [second, first] : [first, second];
  const index = month.length === 3 ? MONTHS.indexOf(month) / 3 : -1;
  const [hours, minutes, seconds] = time.split(':').map(number);
  return index < 0
    ? NaN
    : Date.UTC(number(year), index, number(day), hours, minutes, seconds ?? NaN);
}

/** `[[days-]hours:]minutes:seconds`, as in POSIX. */
function parseAge(word: string): number {
  const match = /^(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)$/.exec(word);
  if (match === null) return NaN;
  const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = match;
  return ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
}

/** macOS prints the whole path. */
function baseName(command: string): string {
  return command.startsWith('/') ? command.slice(command.lastIndexOf('/') + 1) : command;
}
