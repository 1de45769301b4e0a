import { spawnSync } from 'node:child_process';

import { reasonOf } from '../common/errors.js';
import type { Subject } from '../journal/story.js';

/** A line of another log, and how far to trust it. */
export interface OtherLine {
  line: string;
  certainty: string;
}

/** Lines to show of each log. */
const MOST = 5;
const MOST_BYTES = 64 * 1024 * 1024;

/** What systemd says of a unit whose processes end. */
const UNIT_LINES =
  /exited, (?:code|status)=|Failed with result|Deactivated|Stopp(?:ed|ing)|oom|killed/i;

/**
 * What other logs have about an end: those of systemd and of the kernel. They say that and how, and at times why; never
 * who sent a signal.
 */
export function otherLines(subjects: readonly Subject[], since: Date | undefined): OtherLogs {
  const logs: OtherLogs = { lines: [], failure: null };
  const read = (args: readonly string[]) => {
    const answer = journalLines(args, since);
    if (typeof answer !== 'string') return answer;
    logs.failure ??= answer;
    return [];
  };
  for (const subject of subjects) {
    for (const each of [...unitLines(subject, read), ...kernelLines(subject, read)]) {
      if (!logs.lines.some(({ line }) => line === each.line)) logs.lines.push(each);
    }
  }
  return logs;
}

/** What was found, and why something could not be read. */
export interface OtherLogs {
  lines: OtherLine[];
  failure: string | null;
}

type Read = (args: readonly string[]) => string[];

function unitLines({ unit, name }: Subject, read: Read): OtherLine[] {
  const wanted = unit ?? name;
  if (wanted === undefined || !/^[\w:.\\@-]+$/.test(wanted)) return [];
  const lines = read(['-u', wanted, '_PID=1']);
  return lines
    .filter((line) => UNIT_LINES.test(line))
    .slice(-MOST)
    .map((line) => ({
      line,
      certainty: 'sure how: systemd reaped it; who sent a signal is not known',
    }));
}

function kernelLines({ name, pid }: Subject, read: Read): OtherLine[] {
  const wanted = pid === undefined ? name : String(pid);
  if (wanted === undefined) return [];
  const literal = wanted.slice(0, 15).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const oom =
    pid === undefined ? `Killed process \\d+ \\(${literal}\\)` : `Killed process ${literal} `;
  const whose = pid === undefined ? '' : ', if no other process had this pid then';
  const fault =
    pid === undefined
      ? `(?:^|\\s)${literal}\\[\\d+\\]: (?:segfault|trap)`
      : `\\[${literal}\\]: (?:segfault|trap)`;
  const found = [
    {
      pattern: new RegExp(oom),
      certainty: `sure: the kernel ran out of memory and killed it${whose}`,
    },
    {
      pattern: new RegExp(fault),
      certainty: `sure: a fault of the program; likely its end${whose}`,
    },
  ];
  const lines = read(['_TRANSPORT=kernel']); // of earlier boots, too
  return found.flatMap(({ pattern, certainty }) =>
    lines
      .filter((line) => pattern.test(line))
      .slice(-MOST)
      .map((line) => ({ line, certainty })),
  );
}

/** A text: why it cannot be read. */
function journalLines(args: readonly string[], since: Date | undefined): string[] | string {
  const from = since === undefined ? [] : ['--since', `@${Math.floor(since.getTime() / 1000)}`];
  const all = ['-q', '--no-pager', '-o', 'short-iso', '-n', '2000', ...from, ...args];
  const { error, stdout, status, stderr } = spawnSync('journalctl', all, {
    ...{ encoding: 'utf8', timeout: 10_000, maxBuffer: MOST_BYTES },
  });
  if (error !== undefined) return `journalctl: ${reasonOf(error)}`;
  const lines = stdout.split('\n').filter((line) => line !== '');
  return status === 0 || lines.length > 0 ? lines : stderr.trim() || 'journalctl failed';
}
