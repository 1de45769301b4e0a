import type { JournalExit, JournalGap } from '../../journal/index.js';
import { MOST_BEFORE } from '../../journal/before.js';
import type { Kept } from '../../journal/coverage.js';
import { lostIn, type Missing } from '../../journal/missing.js';
import type { Story } from '../../journal/story.js';

import { escapeText } from './escape.js';
import { type Client, row, tellStory } from './exit-story.js';
import { describeExit } from './exit-table.js';
import { describeCommand } from './command-text.js';
import { span } from './times.js';

const SAME_SENDER = 'signals of the same sender within 10 s';

/** How many of a list to name. */
const MOST_NAMED = 5;

/** What is known about an end, and what led to it: one fact per line. */
export function tellWhy(story: Story): string {
  const { end } = story;
  return [
    ...describePassed(story),
    tellStory(end, story.clients.map(asClient)).trimEnd(),
    ...describeCgroup(story.end),
    ...listed('also', `by ${SAME_SENDER} (sure)`, end, story.sameEnder),
    ...listed('also', `by ${SAME_SENDER} (likely: the same pid)`, end, story.likelySameEnder),
    ...listed('near', `in the same ${placeOf(end)} within 10 s (sure)`, end, story.samePlace),
    ...describeBefore(story),
    ...story.gaps.flatMap((gap) => describeGap(gap) ?? []).map((what) => row('lost', what)),
    ...describeLater(story),
    ...describeKeeps(story),
    ...describeRun(story),
    ...describeEnderEnd(story),
    '',
  ].join('\n');
}

/** What was passed over, because nobody asks about it. */
function describePassed({ later }: Story): string[] {
  if (later === null) return [];
  const { count, own, isCut } = later;
  const ends = (number: number) => (number === 1 ? '1 later end' : `${number} later ends`);
  const parts = [
    ...(count === 0 ? [] : [`${ends(count)} exited 0`]),
    ...(own === 0 ? [] : [`${ends(own)} had the name of a command of exitwatch`]),
    ...(isCut ? ['earlier ends, of which one may have failed, were not looked at'] : []),
  ];
  return [row('later', `${parts.join('; ')}: --all`)];
}

function asClient(exit: JournalExit): Client {
  return { ...exit, endedAt: exit.exitedAt };
}

/** The story of an end has the places that the cgroup names, if there are any. */
function describeCgroup({ cgroup, unit, container, pod, machine }: JournalExit): string[] {
  const isNamed = [unit, container, pod, machine].some((place) => place !== null);
  return isNamed || cgroup === null ? [] : [row('in', `cgroup ${escapeText(cgroup)}`)];
}

function placeOf({ unit }: JournalExit): string {
  return unit === null ? 'cgroup' : 'unit';
}

function describeEnderEnd({ end, ender, enderEnd }: Story): string[] {
  if (ender?.pid == null || ender.pid === end.pid) return [];
  if (enderEnd === null) return [];
  const { commandLine } = enderEnd;
  const times = [
    ...(enderEnd.startedAt === null ? [] : [`from ${enderEnd.startedAt.toISOString()}`]),
    `until ${enderEnd.exitedAt.toISOString()}`,
  ];
  return [
    row('sender', `${describeExit(enderEnd)}, ${times.join(' ')}`),
    ...(commandLine === null ? [] : [row('', `command ${describeCommand(commandLine)}`)]),
    row('', `uid ${enderEnd.uid ?? 'unknown'}, cgroup ${escapeText(enderEnd.cgroup ?? 'unknown')}`),
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
    row(name, `${count(others.length)} ended ${what}`),
    ...named,
    ...(more === 0 ? [] : [row('', `and ${count(more)}`)]),
  ];
}

function count(others: number): string {
  return others === 1 ? '1 other' : `${others} others`;
}

function describeBefore({ before, beginsAt, missingBefore }: Story): string[] {
  const missing = describeMissing(missingBefore);
  const period =
    beginsAt === null
      ? 'in the 24 hours before'
      : `since the journal began, ${beginsAt.toISOString()}`;
  if (before.length === 0) {
    return missing === null ? [] : [row('before', `ends may be missing ${period}: ${missing}`)];
  }
  const isMore = before.length === MOST_BEFORE || missing !== null;
  const times = `${isMore ? 'at least ' : ''}${timesOf(before.length)}`;
  const named = before.slice(0, MOST_NAMED).map((exit) => {
    return row('', `${exit.exitedAt.toISOString()}  ${describeExit(exit)}`);
  });
  return [
    row('before', `it had ended ${times} ${period}`),
    ...named,
    ...(missing === null ? [] : [row('', `ends may be missing: ${missing}`)]),
  ];
}

/** What ended in a run that goes on says nothing of its end. */
function describeRun({ run }: Story): string[] {
  if (run === null) return [];
  const since = run.at.toISOString();
  return run.hasEnd
    ? [row('now', `it runs since ${since}: this is the end of a process in it, not of its run`)]
    : [row('now', `it runs again since ${since}`)];
}

function describeKeeps({ keeps }: Story): string[] {
  return keeps === null ? [] : [row('keeps', `${describeKept(keeps)}: there may be others`)];
}

/** Which ends a journal was given, if not all. */
export function describeKept(keeps: readonly Kept[]): string {
  const only = keeps.flatMap((each) => (each === null ? [] : [each.join(' or ')]));
  const what = keeps.length === 1 ? 'this journal keeps' : 'parts of this journal keep';
  return `${what} only ends that match ${only.join('; or ')}`;
}

function timesOf(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function describeLater({ missingSince }: Story): string[] {
  const what = missingSince && describeMissing(missingSince);
  if (what === null) return [];
  return [row('later', `ends may be missing: ${what}; "exitwatch history" says when`)];
}

/** `null`: nothing is missing. */
export function describeMissing({ lost, isMore, counted }: Missing): string | null {
  const parts = [
    ...(isMore ? ['an unknown number was lost'] : []),
    ...(lost > 0 ? [`up to ${lost}${isMore ? ' others' : ''} were lost`] : []),
    ...(counted > 0 ? [`${counted} were counted and not kept`] : []),
  ];
  return parts.length === 0 ? null : parts.join(', ');
}

/** `null`: all of it was recovered. */
function describeGap(gap: JournalGap): string | null {
  const between = `between ${gap.from.toISOString()} and ${gap.to.toISOString()}`;
  if (gap.reason === 'trace-buffer') return `not all signals ${between} were seen`;
  const lost = lostIn(gap);
  if (lost === 0) return null;
  return `${lost === null ? 'ends' : `up to ${lost} ends`} ${between} may be missing`;
}
