import { spawnSync } from 'node:child_process';

import type { Subject } from '../journal/story.js';

/** A line of another log, and how far to trust it. */
export interface OtherLine {
  line: string;
  certainty: string;
}

/** Lines to show of each log. */
const MOST = 5;

/** What systemd says of a unit whose processes end. */
const UNIT_LINES =
  /exited, (?:code|status)=|Failed with result|Deactivated|Stopp(?:ed|ing)|oom|killed/i;

/**
 * What other logs have about an end: those of systemd and of the kernel. They say that and how, and at times why; never
 * who sent a signal.
 */
export function otherLines(subject: Subject, since: Date | undefined): OtherLine[] {
  return [...unitLines(subject, since), ...kernelLines(subject, since)];
}

function unitLines({ unit, name }: Subject, since: Date | undefined): OtherLine[] {
  const wanted = unit ?? name;
  if (wanted === undefined || !/^[\w:.\\@-]+$/.test(wanted)) return [];
  const lines = journalLines(['-u', wanted, '_PID=1'], since);
  return lines
    .filter((line) => UNIT_LINES.test(line))
    .slice(-MOST)
    .map((line) => ({
      line,
      certainty: 'sure how: systemd reaped it; who sent a signal is not known',
    }));
}

function kernelLines({ name, pid }: Subject, since: Date | undefined): OtherLine[] {
  const wanted = pid === undefined ? name : String(pid);
  if (wanted === undefined) return [];
  const literal = wanted.slice(0, 15).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const oom =
    pid === undefined ? `Killed process \\d+ \\(${literal}` : `Killed process ${literal} `;
  const fault =
    pid === undefined
      ? `${literal}\\S*\\[\\d+\\]: (?:segfault|trap)`
      : `\\[${literal}\\]: (?:segfault|trap)`;
  const found = [
    {
      pattern: new RegExp(oom, 'i'),
      certainty: 'sure: the kernel ran out of memory and killed it',
    },
    { pattern: new RegExp(fault), certainty: 'sure: a fault of the program; likely its end' },
  ];
  const lines = journalLines(['-k'], since);
  return found.flatMap(({ pattern, certainty }) =>
    lines
      .filter((line) => pattern.test(line))
      .slice(-MOST)
      .map((line) => ({ line, certainty })),
  );
}

/** `[]`: there is no such log, or we may not read it. */
function journalLines(args: readonly string[], since: Date | undefined): string[] {
  const from = since === undefined ? [] : ['--since', `@${Math.floor(since.getTime() / 1000)}`];
  const all = ['-q', '--no-pager', '-o', 'short-iso', '-n', '2000', ...from, ...args];
  const { error, stdout } = spawnSync('journalctl', all, { encoding: 'utf8', timeout: 10_000 });
  return error === undefined ? stdout.split('\n').filter((line) => line !== '') : [];
}
