import type { ExitEvent, Gap, SourceChange } from '../exit-event.js';

import type { SignalEvent } from '../signal-event.js';

import { escapeText } from './escape.js';
import { describeKiller, describeSender } from './sender-text.js';

/** Wide enough for every kernel name. */
const NAME_WIDTH = 15;

/** And for most outcomes. */
const HOW_WIDTH = 16;

type Color = 'plain' | 'yellow' | 'red' | 'magenta';

const GAP_REASONS: Record<Gap['reason'], string> = {
  'receive-buffer': "the kernel's buffer was full",
  'queue-limit': 'exitwatch was too slow to print',
  silenced: 'the kernel had gone silent',
  'trace-buffer': 'too many signals at once',
};

const COLORS: Record<Color, string> = {
  plain: '',
  yellow: '\u001b[33m',
  red: '\u001b[31m',
  magenta: '\u001b[35m',
};

/** Ends of processes as lines of a table for people. */
export class ExitTable {
  readonly #colored: boolean;

  constructor(colored: boolean) {
    this.#colored = colored;
  }

  static header(): string {
    return row('TIME', 'PID', 'PARENT', 'UID', 'NAME', 'LIVED', 'HOW', 'BY');
  }

  exit(event: ExitEvent): string {
    const name = event.name === null ? '-' : escapeText(event.name);
    const line = row(
      clock(event.exitedAt),
      String(event.pid),
      String(event.parentPid ?? '-'),
      String(event.uid ?? '-'),
      name,
      event.startedAt === null ? '-' : span(event.exitedAt.getTime() - event.startedAt.getTime()),
      outcome(event),
      describeKiller(event) + (event.lossless ? '' : ' (a gap overlapped its life)'),
    );
    return this.#paint(line, color(event));
  }

  signal({ pid, name, sender }: SignalEvent): string {
    const from = describeSender(sender, pid);
    const uid = sender.pid === null ? '' : `, uid ${sender.uid}`;
    return `${clock(sender.sentAt)}  SIGNAL: ${sender.signal} to ${pid} ${escapeText(name)} from ${from}${uid}`;
  }

  gap(gap: Gap): string {
    const recovered = gap.recovered === 0 ? '' : `, ${gap.recovered} found again`;
    const what = gap.reason === 'trace-buffer' ? 'signals' : 'events';
    return this.#paint(
      `${clock(gap.to)}  GAP: ${gap.lost ?? 'unknown'} ${what} lost since ${clock(gap.from)}, ` +
        `${GAP_REASONS[gap.reason]}${recovered}`,
      'magenta',
    );
  }

  source({ at, source, previous, downgrade }: SourceChange): string {
    const why = downgrade === null ? '' : `: ${downgrade.detail}`;
    return this.#paint(`${clock(at)}  SOURCE: ${source} instead of ${previous}${why}`, 'magenta');
  }

  #paint(line: string, name: Color): string {
    return this.#colored && name !== 'plain' ? `${COLORS[name]}${line}\u001b[0m` : line;
  }
}

/** An end in a sentence. */
export function describeExit(event: ExitEvent): string {
  const name = event.name === null ? '' : ` (${escapeText(event.name)})`;
  const lived =
    event.startedAt === null
      ? ''
      : `, after ${span(event.exitedAt.getTime() - event.startedAt.getTime())}`;
  return `${event.pid}${name} ${outcome(event)}${lived}`;
}

type Cells = [string, string, string, string, string, string, string, string];

function row(...cells: Cells): string {
  const [time, pid, parent, uid, name, lived, how, by] = cells;
  const left = `${time.padEnd(12)}  ${pid.padStart(7)}  ${parent.padStart(7)}  ${uid.padStart(5)}`;
  return `${left}  ${name.padEnd(NAME_WIDTH)}  ${lived.padStart(7)}  ${how.padEnd(HOW_WIDTH)}  ${by}`;
}

function color(event: ExitEvent): Color {
  if (event.how === 'unknown') return 'magenta';
  if (event.how === 'exited') return event.exitCode === 0 ? 'plain' : 'yellow';
  return 'red';
}

function outcome(event: ExitEvent): string {
  switch (event.how) {
    case 'exited':
      return `exited ${event.exitCode}`;
    case 'killed':
      return `killed ${event.signal}${event.coreDumped === null ? ' (core: unknown)' : ''}`;
    case 'dumped':
      return `dumped ${event.signal}`;
    case 'unknown':
      return `unknown (${event.unknownReason})`;
  }
}

/** Local time of day. */
export function clock(date: Date): string {
  const two = (number: number) => String(number).padStart(2, '0');
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${time}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** A time in the unit that suits it. */
export function span(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 100) return `${seconds.toFixed(2)}s`;
  if (seconds < 6000) return `${(seconds / 60).toFixed(1)}m`;
  if (seconds < 360_000) return `${(seconds / 3600).toFixed(1)}h`;
  return `${(seconds / 86_400).toFixed(1)}d`;
}
