import { resolve } from 'node:path';

import { NamePattern } from '../../common/name-pattern.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { type JournalQuery, readJournal } from '../../journal/index.js';
import { namesOf } from '../../journal/terms.js';
import { parseInteger } from '../args/integer.js';
import { hasOutcome } from '../args/outcome-filter.js';
import { parseArguments } from '../args/parse-arguments.js';
import {
  containerMatcher,
  hasWildcards,
  isIn,
  ownUnit,
  parseCgroup,
  parseUser,
  unitMatcher,
  unitName,
} from '../args/process-filter.js';
import { parseTime } from '../args/time.js';
import { UsageError } from '../args/usage-error.js';
import { DEFAULT_STATE_DIR, journalDir } from '../journal-dirs.js';
import { withJournalRemedy } from '../journal-remedy.js';
import { escapeText } from '../output/escape.js';
import { HistoryPrinter } from '../output/history-printer.js';
import { describeStop, stoppedAt } from '../recording-note.js';

export const HISTORY_HELP = `Prints which processes ended, when, how, and who ended them, from the journal
that "exitwatch record" writes.

Usage: exitwatch history [OPTION]…

  --since TIME       only what happened then or later: -1h, "2 hours ago",
                     yesterday, 03:00, "2026-11-24 03:00", or ISO 8601
  --until TIME       only what happened until then
  --pid N            only this pid (may be repeated)
  --name GLOB        only processes with this name (may be repeated): the
                     kernel's name, or the program's file name
  --user USER        only processes of this user (may be repeated)
  --cgroup PATH      only processes in this cgroup or below it (may be repeated)
  --parent N         only children of this process (may be repeated)
  --unit UNIT        only processes of this unit of the system's systemd (may be
                     repeated): a name or a glob; nginx is nginx.service;
                     1000:nginx is that of the manager of the user 1000
  --user-unit UNIT   the same of your own user's manager
  --container C      only processes in this container (may be repeated): its
                     name, a glob, or the first digits of its id, which also
                     select what ran in containers inside it; 1000:ID is one
                     that the user 1000 runs
  --killed-by WHO    only processes that this sender ended: a name or a pid
  --failed           only processes that did not exit with 0, or did so after a
                     SIGTERM, SIGINT or SIGQUIT, or right after a SIGHUP
  --killed           only processes that a signal killed
  --follow           waits for more, until Ctrl-C
  --json             prints one JSON object per line
  --state-dir DIR    the directory of "exitwatch record" (default:
                     ${DEFAULT_STATE_DIR})
  --help             prints this text

A process must match all kinds of filters that you give, and one value of each.
Gaps are always printed: an end that you miss may be in one.

Exits with 0; 125 if there is no journal, or it cannot be read; 2 for wrong
usage.
`;

/** `exitwatch history`; resolves with the exit code. */
export async function historyCommand(args: readonly string[]): Promise<number> {
  const { query, selects, json } = parse(args);
  const ending = new AbortController();
  const end = () => {
    ending.abort();
  };
  process.once('SIGINT', end);
  process.stdout.on('error', end);
  const printer = new HistoryPrinter(json);
  const sayStop = async () => {
    const stopped = await stoppedAt(query.dir);
    if (stopped !== null) process.stderr.write(`exitwatch: ${describeStop(stopped)}\n`);
  };
  try {
    if (query.follow === true) await sayStop();
    for await (const row of readJournal({ ...query, signal: ending.signal })) {
      if (row.event === 'exit' && !selects(row)) continue;
      await printer.print(row, ending.signal);
    }
    if (query.follow !== true) await sayStop();
  } catch (error) {
    throw withJournalRemedy(error);
  } finally {
    process.off('SIGINT', end);
  }
  return 0;
}

const LIST = { type: 'string', multiple: true, default: [] as string[] };

function parse(args: readonly string[]) {
  const { values } = parseArguments({
    args: [...args],
    options: {
      since: { type: 'string' },
      until: { type: 'string' },
      pid: LIST as { type: 'string'; multiple: true; default: string[] },
      name: LIST as { type: 'string'; multiple: true; default: string[] },
      user: LIST as { type: 'string'; multiple: true; default: string[] },
      cgroup: LIST as { type: 'string'; multiple: true; default: string[] },
      parent: LIST as { type: 'string'; multiple: true; default: string[] },
      unit: LIST as { type: 'string'; multiple: true; default: string[] },
      'user-unit': LIST as { type: 'string'; multiple: true; default: string[] },
      container: LIST as { type: 'string'; multiple: true; default: string[] },
      'killed-by': { type: 'string' },
      failed: { type: 'boolean', default: false },
      killed: { type: 'boolean', default: false },
      follow: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      'state-dir': { type: 'string', default: DEFAULT_STATE_DIR },
    },
  });
  const { failed, killed, follow, json, since, until, container, name } = values;
  const unit = [...values.unit, ...values['user-unit'].map(ownUnit)];
  const pids = values.pid.map((text) => parseInteger('--pid', text));
  const uids = values.user.map(parseUser);
  const cgroups = values.cgroup.map(parseCgroup);
  const parents = values.parent.map((text) => parseInteger('--parent', text));
  const killer = values['killed-by'];
  const pattern = new NamePattern(name);
  const [onlyName, onlyPid] = [only(name), only(pids)];
  // The indexes know whole names, so these are found without reading everything.
  const [onlyUnit, onlyContainer] = [onlyLiteral(unit), onlyLiteral(container)];
  const [isInUnit, isInContainer] = [unitMatcher(unit), containerMatcher(container)];
  const [from, to] = [timeOf('--since', since), timeOf('--until', until)];
  if (from !== undefined && to !== undefined && from > to) {
    throw new UsageError(
      `--since (${from.toISOString()}) must not be later than --until (${to.toISOString()})`,
    );
  }
  const query: JournalQuery = {
    dir: journalDir(resolve(values['state-dir'])),
    follow,
    ...(from === undefined ? {} : { since: from }),
    ...(to === undefined ? {} : { until: to }),
    ...(onlyName === undefined ? {} : { name: onlyName }),
    ...(onlyPid === undefined ? {} : { pid: onlyPid }),
    ...(onlyUnit === undefined ? {} : { unit: unitName(onlyUnit) }),
    ...(onlyContainer === undefined ? {} : { container: onlyContainer }),
    ...(killer === undefined ? {} : { killedBy: /^\d+$/.test(killer) ? Number(killer) : killer }),
  };
  const selects = (event: ExitEvent) =>
    hasOutcome(event, { failed, killed }) &&
    isOneOf(pids, event.pid) &&
    isOneOf(uids, event.uid) &&
    isOneOf(parents, event.parentPid) &&
    (unit.length === 0 || isInUnit(event.cgroup) === true) &&
    (container.length === 0 || isInContainer(event) === true) &&
    (name.length === 0 || pattern.matches(namesOf(event))) &&
    (cgroups.length === 0 || cgroups.some((each) => isIn(event.cgroup ?? '', each)));
  return { query, selects, json };
}

/** Says on stderr if the local clock shows it twice, or never. */
function timeOf(option: string, text: string | undefined): Date | undefined {
  const note = (what: string) => process.stderr.write(`exitwatch: ${escapeText(what)}\n`);
  return text === undefined ? undefined : parseTime(option, text, { note });
}

function only<Value>(values: readonly Value[]): Value | undefined {
  return values.length === 1 ? values[0] : undefined;
}

function onlyLiteral(values: readonly string[]): string | undefined {
  const value = only(values);
  return value === undefined || hasWildcards(value) ? undefined : value;
}

function isOneOf(wanted: readonly number[], value: number | null): boolean {
  return wanted.length === 0 || (value !== null && wanted.includes(value));
}
