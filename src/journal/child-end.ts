import { killerOf } from '../events/ended-by.js';
import { signalNumber } from '../events/wait-status.js';
import { grammarOf } from '../process/interpreters.js';

import { momentOf, msBetween, startOf } from './moments.js';
import type { JournalExit } from './rows.js';
import { namesOf } from './terms.js';

/** Programs that run another one, and end as that did. */
const WRAPPERS: readonly string[] = [
  ...['bun', 'doas', 'make', 'npm', 'npx', 'pnpm', 'runuser', 'script', 'setpriv', 'setsid', 'sg'],
  ...[
    'sshd',
    'stdbuf',
    'strace',
    'su',
    'sudo',
    'time',
    'timeout',
    'unbuffer',
    'unshare',
    'xargs',
    'yarn',
  ],
];

/** What npm and its like call themselves: `npm exec jest`. */
const WRAPPER_TITLE = /^(?:npm|npx|pnpm|yarn)\b/;

/** How soon a wrapper ends after what it wrapped. */
const SOON_MS = 1000;

/** The clocks of both ends agree to so many ms. */
const BLUR_MS = 10;

/** What a shell exits with after a signal has killed what it waited for: 128 and the signal's number. */
const BY_SIGNAL = 128;

/**
 * Whether a child of a process is why it ended as it did: a shell exits with 128+n after signal n has killed its child, and
 * `timeout`, `sudo` or `npm` end as what they have run.
 *
 * @param row an end that may be of its child
 */
export function isEndedBy(row: JournalExit, end: JournalExit): boolean {
  if (row.parentPid !== end.pid || row.id === end.id) return false;
  const aheadMs = msBetween(momentOf(row), momentOf(end));
  const isWithin = end.startedAt === null || msBetween(startOf(end), momentOf(row)) >= -BLUR_MS;
  if (!isWithin || !(aheadMs >= -BLUR_MS && aheadMs <= SOON_MS)) return false;
  if (end.how === 'exited') {
    if (end.exitCode === 0) return false;
    if (row.signal !== null && end.exitCode === BY_SIGNAL + signalNumber(row.signal)) return true;
    return isWrapper(end) && isPassedOn(row, end);
  }
  // sudo kills itself with the signal that has killed what it ran.
  const killer = killerOf(end);
  const isOwn = killer === null || killer.pid === end.pid;
  return isWrapper(end) && isOwn && end.signal !== null && row.signal === end.signal;
}

function isPassedOn(row: JournalExit, end: JournalExit): boolean {
  if (row.how === 'exited') return row.exitCode === end.exitCode;
  // `timeout` exits with 124 after it has ended what it ran.
  return namesOf(end).includes('timeout') && row.signal !== null;
}

function isWrapper(end: JournalExit): boolean {
  const names = namesOf(end);
  return names.some((name) => WRAPPERS.includes(name) || WRAPPER_TITLE.test(name) || isShell(name));
}

function isShell(name: string): boolean {
  return name.endsWith('sh') && grammarOf(name) !== null;
}
