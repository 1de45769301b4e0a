import { spawnSync } from 'node:child_process';

import { reasonOf } from '../common/errors.js';
import { NamePattern } from '../common/name-pattern.js';
import type { Subject } from '../journal/story.js';
import { ownedName } from '../where/owned-name.js';

/** A line of another log, and how far to trust it. */
export interface OtherLine {
  line: string;
  certainty: string;
}

/** What was found, and where. */
export interface OtherLogs {
  lines: OtherLine[];
  /** The logs that were asked: systemd's of a unit, the kernel's. */
  asked: ReadonlySet<'systemd' | 'kernel'>;
  /** They have more lines, which were not looked at. */
  isCut: boolean;
  /** Why something could not be read. */
  failure: string | null;
}

/** Lines to show of each log. */
const MOST = 5;
const MOST_BYTES = 64 * 1024 * 1024;

/** Lines to look at of each log: the last ones. */
export const MOST_LOOKED_AT = 20_000;

/** What systemd says of a unit whose processes end, behind the unit's name, and what it may do about it. */
const UNIT_LINES = [
  {
    pattern: /: (?:[A-Z][\w ]* process exited, |Failed with result |Deactivated |Succeeded\.)/,
    certainty: 'sure how: systemd reaped it; who sent a signal is not known',
  },
  {
    pattern: /: A process of this unit has been killed by the OOM killer/,
    certainty: 'sure: the kernel has counted it',
  },
  {
    pattern: /: (?:Killing process |Sent signal |State '[\w-]+' timed out)|^Stopping /, // not "Stopped", which precedes an automatic restart, too
    certainty: 'sure: systemd did it; who asked for that is not known',
  },
];

/** What is in front of the message: a time, a host, and `systemd[1]: `. */
const PREFIX = /^\S+ \S+ [^:]*: /;

/**
 * What other logs have about an end: those of systemd and of the kernel. They say that and how, and at times why; never
 * who sent a signal.
 */
export function otherLines(subjects: readonly Subject[], since: Date | undefined): OtherLogs {
  const asked = new Set<'systemd' | 'kernel'>();
  const logs: OtherLogs = { lines: [], asked, isCut: false, failure: null };
  const read: Read = (log, args) => {
    asked.add(log);
    const { lines, failure } = journalLines(args, since);
    logs.failure ??= failure;
    logs.isCut ||= lines.length >= MOST_LOOKED_AT;
    return lines;
  };
  for (const subject of subjects) {
    for (const each of [...unitLines(subject, read), ...kernelLines(subject, read)]) {
      if (!logs.lines.some(({ line }) => line === each.line)) logs.lines.push(each);
    }
  }
  return logs;
}

type Read = (log: 'systemd' | 'kernel', args: readonly string[]) => string[];

function unitLines({ unit, name }: Subject, read: Read): OtherLine[] {
  const wanted = unit ?? name;
  // That of the system says nothing of a user's.
  if (wanted === undefined || ownedName(wanted).uid !== null || !/^[\w:.\\@*?-]+$/.test(wanted))
    return [];
  const lines = read('systemd', ['-u', wanted, '_PID=1']);
  return lines.flatMap((line) => unitLine(line) ?? []).slice(-MOST);
}

/** What a line of systemd says of the end of a unit's processes; `null`: nothing. */
export function unitLine(line: string): OtherLine | null {
  const message = line.replace(PREFIX, '');
  const kind = UNIT_LINES.find(({ pattern }) => pattern.test(message));
  return kind === undefined ? null : { line, certainty: kind.certainty };
}

function kernelLines(subject: Subject, read: Read): OtherLine[] {
  if (subject.pid === undefined && subject.name === undefined) return [];
  return kernelLinesAmong(read('kernel', ['_TRANSPORT=kernel']), subject); // of earlier boots, too
}

/** What the kernel says of the end of a process: `name` and `pid` are groups of the pattern. */
const KERNEL_LINES = [
  {
    pattern:
      /Memory cgroup out of memory.*Killed process (?<pid>\d+) \((?<name>.*?)\)(?:,| total-vm)/,
    certainty: 'sure: its cgroup reached its limit of memory, and the kernel killed it',
  },
  {
    pattern:
      /(?<!cgroup )out of memory.*Killed process (?<pid>\d+) \((?<name>.*?)\)(?:,| total-vm)/i,
    certainty: 'sure: the kernel ran out of memory and killed it',
  },
  {
    // "traps: app[7] trap invalid opcode ip:…", "app[7]: segfault at …"
    pattern:
      /^(?:traps: )?(?<name>.+)\[(?<pid>\d+)\]:? (?:segfault|trap|general protection|unhandled|bad frame)/,
    certainty: 'sure: a fault of the program; likely its end',
  },
];

/** What lines of the kernel say of the end of a process. */
export function kernelLinesAmong(lines: readonly string[], { name, pid }: Subject): OtherLine[] {
  const names = name === undefined ? null : new NamePattern([name]);
  const isOfIt = (groups: Partial<Record<string, string>>) =>
    pid === undefined
      ? names?.matches([groups['name'] ?? '']) === true
      : groups['pid'] === String(pid);
  const whose = pid === undefined ? '' : ', if no other process had this pid then';
  return KERNEL_LINES.flatMap(({ pattern, certainty }) =>
    lines
      .filter((line) => {
        const groups = pattern.exec(line.replace(PREFIX, ''))?.groups;
        return groups !== undefined && isOfIt(groups);
      })
      .slice(-MOST)
      .map((line) => ({ line, certainty: certainty + whose })),
  );
}

function journalLines(
  args: readonly string[],
  since: Date | undefined,
): { lines: string[]; failure: string | null } {
  const from = since === undefined ? [] : ['--since', `@${Math.floor(since.getTime() / 1000)}`];
  // Not -q: it would hide that there are logs that we may not read, or none at all.
  const all = ['--no-pager', '-o', 'short-iso', '-n', `${MOST_LOOKED_AT}`, ...from, ...args];
  const { error, stdout, status, stderr } = spawnSync('journalctl', all, {
    ...{ encoding: 'utf8', timeout: 10_000, maxBuffer: MOST_BYTES },
  });
  if (error !== undefined) return { lines: [], failure: `journalctl: ${reasonOf(error)}` };
  // `-- No entries --`, `-- Boot … --`
  const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith('-- '));
  const [said] = stderr.split('\n').filter((line) => line.trim() !== '');
  return { lines, failure: said?.trim() ?? (status === 0 ? null : 'journalctl failed') };
}
