import { resolve } from 'node:path';

import { ExitwatchError } from '../../common/errors.js';
import { literally } from '../../common/name-pattern.js';
import { Coverage } from '../../journal/coverage.js';
import { JournalDirectory } from '../../journal/journal-directory.js';
import { missingAmong } from '../../journal/missing.js';
import { nearest, NOTHING_NEAR } from '../../journal/nearest.js';
import { readRows } from '../../journal/read-journal.js';
import { findEnd, findEnds } from '../../journal/last-end.js';
import { type Story, storyOf, type Subject } from '../../journal/story.js';
import { ownUnit } from '../args/process-filter.js';
import { parseArguments } from '../args/parse-arguments.js';
import { parseTime } from '../args/time.js';
import { UsageError } from '../args/usage-error.js';
import { DEFAULT_STATE_DIR, journalDir } from '../journal-dirs.js';
import { withJournalRemedy } from '../journal-remedy.js';
import { MOST_LOOKED_AT, otherLines } from '../other-logs.js';
import { describeError } from '../output/error-text.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { NAME_WIDTH } from '../output/exit-story.js';
import { describeAnswer, describeChild, describeExit } from '../output/exit-table.js';
import { EXIT_FAILED, EXIT_NO_SUCH_PROCESS } from '../output/exit-codes.js';
import { columnsOf, paragraph } from '../output/terminal-text.js';
import { describeKept, describeMissing, tellWhy } from '../output/why-text.js';
import { describeStop, stoppedAt } from '../recording-note.js';
import { ownedName } from '../../where/owned-name.js';
import { runsSince } from '../running-since.js';

export const WHY_HELP = `Tells how a process ended, who ended it, and what led to it, from the journal
that "exitwatch record" writes.

Usage: exitwatch why NAME|PID|UNIT|CONTAINER [OPTION]…
       exitwatch why --user-unit UNIT [OPTION]…

  NAME             the last process with this name that was killed, failed, was
                   asked to end, or ended unseen; without one, the last one that
                   exited with 0. If none has the name, those that match it as a
                   pattern with *, ? or [a-z], the unit NAME.service, the
                   container NAME, then those that called themselves so by their
                   first argument, where arguments were recorded. A name is the
                   kernel's, or the program's file name; exitwatch's own commands
                   do not count
  PID              the last process with this pid
  UNIT             a unit of the system's systemd: nginx.service; or of the
                   manager of the user 1000: 1000:mail.service. Of its last run,
                   what was started first; of several steps, such as
                   ExecStartPre=, the first one that failed, or else the one that
                   lived longest
  CONTAINER        a container, by its name, its id, or the first 12 digits of
                   the id; 1000:ID is one that the user 1000 runs

  --user-unit UNIT  a unit of your own user's manager
  --since TIME     only what happened then or later: -1h, yesterday, 03:00,
                   "2026-11-24 03:00", or ISO 8601
  --all            tells of all ends, the oldest first
  --json           prints one JSON object per line
  --state-dir DIR  the directory of "exitwatch record" (default:
                   ${DEFAULT_STATE_DIR})
  --help           prints this text

Each line says how certain it is. Without a journal, prints what other logs have
about it.

Exits with 0; 127 if the journal has no such end, 125 if there is no journal or
it cannot be read, 2 for wrong usage.
`;

/** `exitwatch why`; resolves with the exit code. */
export async function whyCommand(args: readonly string[]): Promise<number> {
  const { word, subjects, since, all, json, dir } = parse(args);
  try {
    const journal = await JournalDirectory.open(dir, { isAskedOften: true });
    const coverage = await Coverage.of(journal);
    let found = false;
    for (const subject of subjects) {
      const ends = all ? allEnds(journal, subject, since) : lastEnd(journal, subject, since);
      for await (const each of ends) {
        if (found && !json) process.stdout.write('\n');
        const story = await storyOf(journal, each.end, all ? null : subject, coverage);
        print({ ...story, run: each.run, later: each.later }, json);
        found = true;
      }
      if (found) break;
    }
    const { begins } = coverage;
    if (found) {
      if (all) await sayMissing(journal, subjects, since);
      if (all && since && begins !== null && begins > since) sayBegin(begins);
      await sayStop(dir);
      return 0;
    }
    // The answer does not depend on what cannot be read.
    const unread: string[] = [];
    const { called, names } = await nearest(journal, word, since).catch((error: unknown) => {
      unread.push(describeError(error));
      return NOTHING_NEAR;
    });
    if (called !== null) {
      say(`The journal has no end of ${JSON.stringify(word)}; this process called itself so.`);
      print(await storyOf(journal, called, null, coverage), json);
      await sayStop(dir);
      return 0;
    }
    const when = since === undefined ? '' : ` since ${since.toISOString()}`;
    say(`exitwatch: the journal has no end of ${JSON.stringify(word)}${when}`);
    if (names.length > 0) say(`The nearest names in it: ${names.join(', ')}.`);
    for (const why of unread) say(`What processes called themselves is not known: ${why}`);
    await sayMissing(journal, subjects, since);
    const kept = coverage.kept(since);
    if (kept.some((each) => each !== null)) {
      say(
        `${describeKept(kept).replace(/^./, (letter) => letter.toUpperCase())}; others are not in it.`,
      );
    }
    if (begins !== null && begins > (since ?? 0)) sayBegin(begins);
    await sayStop(dir);
    tellOthers(subjects, since, json);
    return EXIT_NO_SUCH_PROCESS;
  } catch (error) {
    const isMissing = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_NO_JOURNAL';
    if (!isMissing) throw error;
    say(`exitwatch: ${describeError(withJournalRemedy(error))}`);
    tellOthers(subjects, since, json);
    return EXIT_FAILED;
  }
}

async function* lastEnd(journal: JournalDirectory, subject: Subject, since: Date | undefined) {
  const last = await findEnd(journal, subject, since, runsSince);
  if (last !== null) yield last;
}

async function* allEnds(journal: JournalDirectory, subject: Subject, since: Date | undefined) {
  for await (const end of findEnds(journal, subject, since)) yield { end, run: null, later: null };
}

function sayBegin(begins: Date): void {
  say(`The journal begins at ${begins.toISOString()}.`);
}

async function sayStop(dir: string): Promise<void> {
  const stopped = await stoppedAt(dir);
  if (stopped !== null) say(describeStop(stopped));
}

/** Why a journal may lack an end that there was. */
async function sayMissing(
  journal: JournalDirectory,
  subjects: readonly Subject[],
  since: Date | undefined,
): Promise<void> {
  const names = subjects.flatMap(({ name }) => name ?? []);
  const rows = readRows(journal, { ...subjects[0], ...(since && { since }) });
  const what = describeMissing(await missingAmong(rows, names));
  if (what !== null) say(`It lacks ends: ${what}; "exitwatch history" says when.`);
}

function print(story: Story, json: boolean): void {
  if (json) {
    process.stdout.write(`${toJsonLine({ event: 'why', ...story })}\n`);
    return;
  }
  const columns = columnsOf(process.stdout);
  const write = (line: string) => process.stdout.write(`${paragraph(line, columns, NAME_WIDTH)}\n`);
  const tell = (each: Story) => {
    const { child } = each;
    if (child === null) {
      write(describeAnswer(each.end));
    } else {
      write(`${describeExit(each.end)}, as its child ${describeChild(child.end)} (likely why)`);
      process.stdout.write('\n');
      tell(child);
      process.stdout.write('\n');
    }
    for (const line of tellWhy(each).trimEnd().split('\n')) write(line);
  };
  tell(story);
}

/** What can be known without us. */
function tellOthers(subjects: readonly Subject[], since: Date | undefined, json: boolean): void {
  const { lines, asked, isCut, failure } = otherLines(subjects, since);
  for (const { line, certainty } of lines) {
    const text = json
      ? toJsonLine({ event: 'other-log', line, certainty })
      : `${escapeText(line)} (${certainty})`;
    process.stdout.write(`${text}\n`);
  }
  if (failure !== null) {
    say(`What systemd and the kernel have logged could not all be read: ${failure}`);
  } else if (lines.length === 0 && asked.size > 0) {
    const [of, has] = asked.has('systemd')
      ? ['Neither systemd’s log nor the kernel’s', 'anything']
      : ['The kernel’s log', 'nothing'];
    const where = isCut ? ` in its last ${MOST_LOOKED_AT} lines` : '';
    say(`${of} has ${has} about it${where}.`);
  }
}

function say(text: string): void {
  process.stderr.write(`${paragraph(escapeText(text), columnsOf(process.stderr), 2)}\n`);
}

function parse(args: readonly string[]) {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      'user-unit': { type: 'string' },
      since: { type: 'string' },
      all: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      'state-dir': { type: 'string', default: DEFAULT_STATE_DIR },
    },
  });
  const userUnit = values['user-unit'];
  const words = userUnit === undefined ? positionals : [...positionals, ownUnit(userUnit)];
  const [word, ...more] = words;
  if (word === undefined || word === '' || userUnit === '' || more.length > 0) {
    throw new UsageError('why requires exactly one NAME, PID, UNIT or CONTAINER');
  }
  return {
    word,
    subjects: userUnit === undefined ? subjectsOf(word) : [{ unit: word }],
    since:
      values.since === undefined ? undefined : parseTime('--since', values.since, { note: say }),
    all: values.all,
    json: values.json,
    dir: journalDir(resolve(values['state-dir'])),
  };
}

const UNIT = /\.(?:service|scope|socket|mount|swap|slice)$/;

/** What a word may mean, the most likely first. */
function subjectsOf(word: string): Subject[] {
  if (/^\d{1,10}$/.test(word) && Number(word) > 0 && Number(word) < 2 ** 31) {
    return [{ pid: Number(word) }];
  }
  if (UNIT.test(word)) return [{ unit: word }, { name: word }];
  if (/^(?:\d{1,10}:)?[0-9a-f]{12,64}$/.test(word)) return [{ container: word }, { name: word }];
  const names = [...new Set([literally(word), word])].map((name) => ({ name }));
  const isUsers = ownedName(word).uid !== null;
  const unit = { unit: `${word}.service` };
  return isUsers ? [unit, ...names] : [...names, unit, { container: word }];
}
