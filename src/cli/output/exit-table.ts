import { killerOf, requestBefore } from '../../events/ended-by.js';
import type { ExitEvent, SourceChange } from '../../events/exit-event.js';
import type { SignalEvent } from '../../events/signal-event.js';
import type { JournalGap, JournalSkip } from '../../journal/index.js';

import { commandForms } from './command-text.js';
import { escapeText } from './escape.js';
import {
  describeNames,
  describeSender,
  isBetterKnown,
  killerForms,
  nameKiller,
} from './sender-text.js';
import { TableLayout } from './table-layout.js';
import { paragraph } from './terminal-text.js';
import { clock, span } from './times.js';
import { wordsFor } from './words.js';

type Color = 'plain' | 'yellow' | 'red' | 'magenta';

const GAP_REASONS: Record<JournalGap['reason'], string> = {
  'receive-buffer': "the kernel's buffer was full",
  'queue-limit': 'exitwatch printed too slowly',
  silenced: 'the kernel stopped sending events',
  'trace-buffer': 'too many signals at once',
  'recorder-full': 'the recorder was full',
  'disk-full': 'the disk was full',
  'not-written': 'they could not be written',
  'not-recording': 'nothing was recording',
  damaged: 'the journal is damaged',
};

const COLORS: Record<Color, string> = {
  plain: '',
  yellow: '\u001b[33m',
  red: '\u001b[31m',
  magenta: '\u001b[35m',
};

/**
 * Formats exits as rows of a table for people. Print the rows in the order in which they were made.
 */
export class ExitTable {
  readonly #colored: boolean;
  #hasCommands: boolean;
  readonly #columns: () => number | undefined;
  #width: number | undefined;
  #layout: TableLayout;
  /** That of the rows so far. */
  #header: string;
  /** The day of the previous row. */
  #day: string;

  /**
   * `columns`: the current width of the terminal; `undefined`: there is no terminal. `hasCommands`:
   * exits come with command lines.
   */
  constructor(
    colored: boolean,
    columns: () => number | undefined,
    since: Date,
    hasCommands = false,
  ) {
    this.#hasCommands = hasCommands;
    this.#colored = colored;
    this.#columns = columns;
    this.#width = columns();
    this.#layout = new TableLayout(this.#width, hasCommands);
    this.#header = this.#layout.header();
    this.#day = day(since);
  }

  header(): string {
    this.#header = this.#layout.header();
    return this.#header;
  }

  /** From now on exits come with command lines. */
  expectCommands(): void {
    if (this.#hasCommands) return;
    this.#hasCommands = true;
    this.#layout = new TableLayout(this.#width, true);
  }

  exit(event: ExitEvent): string {
    const before = this.#dayChange(event.exitedAt);
    const { pid, parentPid, uid, startedAt, exitedAt } = event;
    const row = this.#layout.row({
      TIME: this.#clock(exitedAt),
      PID: String(pid),
      PARENT: String(parentPid ?? '-'),
      UID: String(uid ?? '-'),
      NAME: this.#names(event),
      LIVED: startedAt === null ? '-' : span(exitedAt.getTime() - startedAt.getTime()),
      // Polling never knows more; the first line has said so.
      HOW: event.unknownReason === 'polled' ? 'unknown' : outcome(event),
      BY: this.#killer(event) + (event.lossless ? '' : ' (a gap overlapped its life)'),
    });
    return before + this.#paint(row, color(event));
  }

  /**
   * The command line if it is known; otherwise both names if they fit into one line, or the better
   * known one.
   */
  #names(event: ExitEvent): string {
    if (event.commandLine !== null) {
      return this.#layout.fitting('NAME', commandForms(event.commandLine, event));
    }
    const both = describeNames(event) ?? '-';
    const { name, program } = event;
    if (program === null || this.#layout.fits('NAME', both)) return both;
    const isEnough = name !== null && name !== '' && program.startsWith(name);
    return escapeText(name !== null && (isEnough || isBetterKnown(name, program)) ? name : program);
  }

  /** A sender's command line may be long. */
  #killer(event: ExitEvent): string {
    const forms = killerForms(event);
    const sender = killerOf(event) ?? requestBefore(event);
    return sender?.commandLine == null ? forms[0] : this.#layout.fitting('BY', forms);
  }

  signal({ pid, name, sender }: SignalEvent): string {
    const from = describeSender(sender, pid);
    const uid = sender.pid === null ? '' : `, uid ${sender.uid}`;
    const what = `SIGNAL: ${sender.signal} to ${pid} ${escapeText(name)} from ${from}${uid}`;
    return this.#note(sender.sentAt, what, 'plain');
  }

  gap(gap: JournalGap): string {
    const recovered = gap.recovered === 0 ? '' : `; ${gap.recovered} recovered`;
    const what = gap.reason === 'trace-buffer' ? 'signals' : 'events';
    const lost = `${gap.lost ?? 'an unknown number of'} ${what} lost ${since(gap)}`;
    return this.#note(
      gap.to,
      `GAP: ${lost}: ${wordsFor(GAP_REASONS, gap.reason)}${recovered}`,
      'magenta',
    );
  }

  skipped({ name, program, count, from, to }: JournalSkip): string {
    const names = describeNames({ name, program });
    const whose = names === null ? '' : ` of ${names}`;
    return this.#note(to, `SKIPPED: ${count} ends${whose} ${since({ from, to })}`, 'plain');
  }

  source({ at, source, previous, downgrade }: SourceChange): string {
    const why = downgrade === null ? '' : `: ${escapeText(downgrade.detail)}`;
    return this.#note(at, `SOURCE: switched from ${previous} to ${source}${why}`, 'magenta');
  }

  /** A sentence between rows. */
  #note(at: Date, text: string, name: Color): string {
    const before = this.#dayChange(at);
    const time = this.#clock(at);
    return before + this.#paint(paragraph(`${time}  ${text}`, this.#width, time.length + 2), name);
  }

  /**
   * What precedes a row: the day if it has changed, and the header if the columns have, because of
   * the terminal's width for example.
   */
  #dayChange(at: Date): string {
    const lines: string[] = [];
    const today = day(at);
    if (today !== this.#day) lines.push(today);
    this.#day = today;
    const width = this.#columns();
    if (width !== this.#width) {
      this.#width = width;
      this.#layout = new TableLayout(width, this.#hasCommands);
    }
    if (this.#layout.header() !== this.#header) lines.push(this.header());
    return lines.map((line) => `${line}\n`).join('');
  }

  #clock(at: Date): string {
    return this.#layout.hasMilliseconds ? clock(at) : clock(at).slice(0, 8);
  }

  #paint(text: string, name: Color): string {
    if (!this.#colored || name === 'plain') return text;
    return text.replace(/^.+$/gm, (line) => `${COLORS[name]}${line}\u001b[0m`);
  }
}

/** An exit as a sentence. */
export function describeExit(event: ExitEvent): string {
  return `${subject(event)} ${outcome(event)}${lived(event, ', after ')}`;
}

/** The same, with who ended it: what somebody wants to know who asks about it. */
export function describeAnswer(event: ExitEvent): string {
  return `${subject(event)} ${answer(event)}${lived(event, '; it lived for ')}`;
}

/** An end as a part of a sentence: `4711 (server) was killed by SIGTERM`. */
export function describeChild(event: ExitEvent): string {
  const { how, signal } = event;
  const what = how === 'killed' || how === 'dumped' ? `was killed by ${signal}` : outcome(event);
  return `${subject(event)} ${what}`;
}

function subject({ pid, name, program }: ExitEvent): string {
  const known = name ?? program;
  return known === null ? String(pid) : `${pid} (${escapeText(known)})`;
}

function lived({ startedAt, exitedAt }: ExitEvent, before: string): string {
  return startedAt === null ? '' : before + span(exitedAt.getTime() - startedAt.getTime());
}

function answer(event: ExitEvent): string {
  const { how, pid, signal, oom, sender, raisedAfter } = event;
  if (how === 'unknown') return `ended; how is not known (${event.unknownReason})`;
  if (how === 'exited') {
    const request = requestBefore(event);
    const after = request && ` after ${request.signal} from ${nameKiller(request, pid)}`;
    return outcome(event) + (after ?? '');
  }
  const core = how === 'dumped' ? ', and dumped core' : '';
  if (oom === true) return `killed by the kernel, which was out of memory${core}`;
  const killer = killerOf(event);
  if (killer === null) return `killed by ${signal}; who sent it is not known${core}`;
  const again = raisedAfter !== null && sender !== null ? ', which it caught and raised again' : '';
  return `killed by ${signal} from ${nameKiller(killer, pid)}${again}${core}`;
}

function color(event: ExitEvent): Color {
  if (event.how === 'unknown') return 'magenta';
  if (event.how === 'exited') return event.exitCode === 0 ? 'plain' : 'yellow';
  return 'red';
}

export function outcome(event: ExitEvent): string {
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

/** A local date: `2026-11-22`. */
function day(date: Date): string {
  const two = (number: number) => String(number).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** With the date, if it is another one than at the end. */
function since({ from, to }: Pick<JournalGap, 'from' | 'to'>): string {
  if (from.getTime() === 0) return 'since an unknown time';
  const date = day(from) === day(to) ? '' : `${day(from)} `;
  return `since ${date}${clock(from)}`;
}
