import { requestBefore } from '../../events/ended-by.js';
import type { ServiceView } from '../../supervise/control/protocol.js';
import {
  type EndedRun,
  type FailedStart,
  type ServiceStory,
  timeOfStory,
} from '../../supervise/ends/service-story.js';

import { escapeText } from './escape.js';
import { tellStory } from './exit-story.js';
import { outcome } from './exit-table.js';
import { describeKiller, NOT_SEEN } from './sender-text.js';
import { padEnd, paragraph, textWidth, wrap } from './terminal-text.js';
import { span } from './times.js';

/** What the supervisor did itself. */
const OURS: readonly string[] = ['stop', 'restart', 'health'];

/** A number with its noun. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** What happened last, and who did it. */
export function describeLast(story: ServiceStory | null, now: Date): string {
  if (story === null) return '-';
  const ago = `${span(now.getTime() - timeOfStory(story).getTime())} ago`;
  if (story.event === 'start-failed') {
    return `${ago}: could not be started${timesOf(story)}: ${escapeText(story.message)}`;
  }
  return `${ago}: ${describeEndedRun(story)}`;
}

function timesOf({ count }: FailedStart): string {
  return count === 1 ? '' : ` (${count} times)`;
}

/** How a run ended, and who did it or asked for it, in a few words. */
export function describeEndedRun(story: EndedRun): string {
  const { decision, signal, oom } = story;
  if (isOurs(story)) return `${outcome(story)}; ${escapeText(decision.because)}`;
  if (signal !== null || oom === true) return `${outcome(story)} by ${killerOf(story)}`;
  return requestBefore(story) === null
    ? outcome(story)
    : `${outcome(story)} ${describeKiller(story)}`;
}

function killerOf(story: EndedRun): string {
  const killer = describeKiller(story);
  return killer === NOT_SEEN ? 'somebody who was not seen' : killer;
}

/** Whether the supervisor has done it, for the reason that is in its decision. */
export function isOurs({ decision }: Pick<EndedRun, 'decision'>): boolean {
  return OURS.includes(decision.reason) && decision.intent !== null;
}

/** What followed an end. */
export function describeDecision({ decision }: Pick<EndedRun, 'decision'>): string {
  const what = decision.restart ? 'started again' : 'not started again';
  return `${what}, because ${escapeText(decision.because)}`;
}

/** What happened, with all that is known about it. */
export function tellServiceStory(story: ServiceStory): string {
  const at = timeOfStory(story).toISOString();
  const name = escapeText(story.service);
  if (story.event === 'start-failed') {
    const since = story.count === 1 ? '' : `, since ${story.since.toISOString()}`;
    const times = `${timesOf(story)}${since}`;
    return `${at}  ${name} could not be started${times}: ${escapeText(story.message)}\n`;
  }
  const followed = isOurs(story) ? '' : `; it was ${describeDecision(story)}`;
  const head = `${at}  ${name} ended: ${describeEndedRun(story)}${followed}`;
  const facts = tellStory(story)
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`);
  return [head, ...facts, ''].join('\n');
}

/** What a service is now. */
export function describeService(service: ServiceView, now: Date): string {
  const { name, phase, pid, startedAt, isReady, notReady, nextStartAt, lastError } = service;
  const since = startedAt === null ? '' : ` for ${span(now.getTime() - startedAt.getTime())}`;
  const why = notReady === null ? '' : `: ${escapeText(notReady)}`;
  const ready = isReady ? ', ready' : `, not ready${why}`;
  const who = pid === null ? '' : `, pid ${pid}${ready}`;
  const next = nextStartAt === null ? '' : `, next start at ${nextStartAt.toISOString()}`;
  const error = lastError === null || pid !== null ? '' : `: ${escapeText(lastError)}`;
  const stop = phase === 'stopped' ? stoppedBy(service) : '';
  return `${escapeText(name)} is ${phase}${since}${who}${waits(service)}${next}${stop || error}`;
}

function stoppedBy({ stopped }: ServiceView): string {
  if (stopped === null) return '';
  const { at, until, why } = stopped;
  const since = at === null ? '' : ` since ${at.toISOString()}`;
  const end = until === 'reboot' ? ', until the next boot' : '';
  return `${since}${end}${why === null ? '' : `: ${escapeText(why)}`}`;
}

function waits({ waitsFor, phase }: ServiceView): string {
  if (waitsFor.length === 0) return '';
  const until = phase === 'stopping' ? 'are stopped' : 'are ready';
  return `, waits until ${waitsFor.map(escapeText).join(', ')} ${until}`;
}

const COLUMNS = ['NAME', 'PHASE', 'READY', 'PID', 'UPTIME', 'STARTS', 'LAST END'] as const;
const RIGHT: readonly string[] = ['PID', 'UPTIME', 'STARTS'];
const LEAST_LAST = 24;
const GAP = '  ';

/** All services as a table. @param columns of the terminal; `undefined`: there is no limit */
export function serviceTable(
  services: readonly ServiceView[],
  now: Date,
  columns: number | undefined,
): string[] {
  const rows = services.map((service) => cellsOf(service, now));
  const all = [COLUMNS.map((name): string => name), ...rows];
  const widths = COLUMNS.map((_, at) => Math.max(...all.map((row) => textWidth(row[at] ?? ''))));
  const last = COLUMNS.length - 1;
  if (columns !== undefined) {
    // The names give way first.
    const others = widths.slice(1, last).reduce((sum, width) => sum + width + GAP.length, 0);
    const most = columns - others - GAP.length - LEAST_LAST;
    widths[0] = Math.max(8, Math.min(widths[0] ?? 0, most));
    widths[last] = Math.max(12, columns - others - GAP.length - widths[0]);
  }
  return all.flatMap((row) => layOut(row, widths, columns !== undefined));
}

function cellsOf(service: ServiceView, now: Date): string[] {
  const { name, phase, isReady, pid, startedAt, restarts, waitsFor, lastStory, isRemoved } =
    service;
  const waiting = waitsFor.length === 0 ? '' : ` (after ${waitsFor.map(escapeText).join(', ')})`;
  return [
    escapeText(name),
    `${isRemoved ? 'removed' : phase}${phase === 'starting' ? waiting : ''}`,
    pid === null ? '-' : isReady ? 'yes' : 'no',
    pid === null ? '-' : String(pid),
    startedAt === null ? '-' : span(now.getTime() - startedAt.getTime()),
    String(restarts),
    describeLast(lastStory, now),
  ];
}

function layOut(row: readonly string[], widths: readonly number[], isWrapped: boolean): string[] {
  const parts = row.map((text, at) => (isWrapped ? wrap(text, widths[at] ?? 1) : [text]));
  const height = Math.max(...parts.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) =>
    parts
      .map((lines, at) => {
        const text = lines[line] ?? '';
        const width = widths[at] ?? 0;
        if (!RIGHT.includes(COLUMNS[at] ?? '')) return padEnd(text, width);
        return ' '.repeat(Math.max(0, width - textWidth(text))) + text;
      })
      .join(GAP)
      .trimEnd(),
  );
}

/** For a terminal: lines that are too long go on below. */
export function fold(text: string, columns: number | undefined, indent: number): string {
  return text
    .split('\n')
    .map((line) => paragraph(line, columns, indent))
    .join('\n');
}
