import type { JournalExit, JournalGap } from '../../journal/index.js';
import type { Story } from '../../journal/story.js';

import { escapeText } from './escape.js';
import { row, tellStory } from './exit-story.js';
import { describeExit, describeNames, span } from './exit-table.js';

/** How many of a list to name. */
const MOST_NAMED = 5;

/** What is known about an end, and what led to it: one fact per line. */
export function tellWhy(story: Story): string {
  const { end } = story;
  return [
    tellStory(end).trimEnd(),
    ...describePlace(story),
    ...describeEnderEnd(story),
    ...describeClients(story),
    ...listed('also', 'by the same sender within 10 s', end, story.sameEnder),
    ...listed('near', `in the same ${placeOf(story)} within 10 s`, end, story.samePlace),
    ...describeBefore(story),
    ...story.gaps.map((gap) => row('lost', describeGap(gap))),
    '',
  ].join('\n');
}

function describePlace({ end, unit, container }: Story): string[] {
  const where = [
    ...(unit === null ? [] : [`unit ${unit}`]),
    ...(container === null ? [] : [`container ${container.slice(0, 12)}`]),
  ];
  if (where.length > 0) return [row('in', escapeText(where.join(', ')))];
  return end.cgroup === null ? [] : [row('in', `cgroup ${escapeText(end.cgroup)}`)];
}

function placeOf({ unit }: Story): string {
  return unit === null ? 'cgroup' : 'unit';
}

function describeEnderEnd({ end, ender, enderEnd }: Story): string[] {
  if (ender?.pid == null || ender.pid === end.pid) return [];
  if (enderEnd === null) return [];
  const command = commandLineOf(enderEnd);
  const times = [
    ...(enderEnd.startedAt === null ? [] : [`from ${enderEnd.startedAt.toISOString()}`]),
    `until ${enderEnd.exitedAt.toISOString()}`,
  ];
  return [
    row('sender', `${describeExit(enderEnd)}, ${times.join(' ')}`),
    ...(command === null ? [] : [row('', `command line: ${escapeText(command)}`)]),
    row('', `uid ${enderEnd.uid ?? 'unknown'}, cgroup ${escapeText(enderEnd.cgroup ?? 'unknown')}`),
  ];
}

/** How it was called, if the journal has that. */
function commandLineOf(exit: JournalExit): string | null {
  const words: unknown = 'commandLine' in exit ? exit.commandLine : null;
  if (typeof words === 'string') return words;
  return Array.isArray(words) ? words.map(String).join(' ') : null;
}

function describeClients({ agent, clients }: Story): string[] {
  if (agent === null) return [];
  const head = row('for', `${agent} acts for others: who asked it is not known for sure`);
  return [
    head,
    ...clients.slice(0, MOST_NAMED).map((client) => {
      const command = commandLineOf(client) ?? describeNames(client) ?? 'name unknown';
      const parent = client.parentPid === null ? '' : `, child of ${client.parentPid}`;
      const who = `${client.pid} ${escapeText(command)}, uid ${client.uid ?? 'unknown'}${parent}`;
      return row('', `${who} ran at that time (likely)`);
    }),
  ];
}

function listed(name: string, what: string, end: JournalExit, others: JournalExit[]): string[] {
  if (others.length === 0) return [];
  const named = others.slice(0, MOST_NAMED).map((other) => {
    const away = other.exitedAt.getTime() - end.exitedAt.getTime();
    return row(
      '',
      `${describeExit(other)}; ${span(Math.abs(away))} ${away < 0 ? 'before' : 'after'}`,
    );
  });
  const more = others.length - named.length;
  return [
    row(name, `${count(others.length)} ended ${what} (sure)`),
    ...named,
    ...(more === 0 ? [] : [row('', `and ${count(more)}`)]),
  ];
}

function count(others: number): string {
  return others === 1 ? '1 other' : `${others} others`;
}

function describeBefore({ before }: Story): string[] {
  if (before.length === 0) return [];
  const named = before.slice(0, MOST_NAMED).map((exit) => {
    return row('', `${exit.exitedAt.toISOString()}  ${describeExit(exit)}`);
  });
  return [
    row(
      'before',
      `it had ended ${before.length === 1 ? 'once' : `${before.length} times`} in the 24 hours before`,
    ),
    ...named,
  ];
}

function describeGap({ from, to, lost }: JournalGap): string {
  const what = lost === null ? 'ends' : `${lost} events`;
  return `${what} between ${from.toISOString()} and ${to.toISOString()} are missing in the journal`;
}
