import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, statSync } from 'node:fs';
import { resolve } from 'node:path';

import { ExitwatchError, reasonOf } from '../../common/errors.js';
import { removeRecorder } from '../../memory/recorder-list.js';
import { DEFAULT_PINS } from '../../memory/recorder-pins.js';
import { COMMAND_LINE_OPTIONS, parseCommandLines } from '../args/command-lines.js';
import { parseInteger } from '../args/integer.js';
import { parseArguments } from '../args/parse-arguments.js';
import { keptBy, parseMatches } from '../args/record-match.js';
import { UsageError } from '../args/usage-error.js';
import { DEFAULT_STATE_DIR, journalDir, recorderDir } from '../journal-dirs.js';
import { describeError } from '../output/error-text.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_FAILED } from '../output/exit-codes.js';
import { describeWatch } from '../output/watch-opening.js';
import { installedFolders, installUnit, recordUnit, uninstallUnit } from '../record-unit.js';
import { Recording } from '../recording.js';
import { keepServiceAlive, notifyService } from '../service.js';
import { untilSignalled } from '../until-signalled.js';

export const RECORD_HELP = `Writes down which processes end, how, and who ended them, for "exitwatch why"
and "exitwatch history".

Usage: exitwatch record [OPTION]…

  --state-dir DIR  where to keep it: the journal in DIR/journal (default:
                   ${DEFAULT_STATE_DIR})
  --group GROUP    a group that may read the journal, for example adm
  --match WHAT     keeps only these ends (may be repeated): all, failed, killed,
                   name=GLOB, user=USER or unit=UNIT; also keeps what may
                   match, for example if its unit is not known
  --rate N         keeps at most N ends of one name in a minute, and counts the
                   others
  --command-lines  also keeps the arguments of processes and of those who end
                   them, without what is probably a password, a token or a key
  --redact REGEX   hides more in arguments (may be repeated): the first group of
                   each match, or all of it
  --pin-dir DIR    the directory for the recorder, which remembers what ends
                   while this command does not run (default:
                   ${DEFAULT_PINS})
  --json           prints one JSON object per line
  --install        installs and starts a service of systemd that runs this
                   command with the other options
  --uninstall      stops and removes it, and leaves the journal
  --print-unit     prints the unit of that service
  --help           prints this text

Each end is on the disk within 1.1 s, and one by a signal within 0.2 s. A
journal keeps 90 days, and at most 1 GiB.

Exits with 0 after SIGTERM or SIGINT; with 125 if the kernel cannot be watched
or DIR cannot be written, or if another "exitwatch record" uses it; with 2 for
wrong usage.
`;

/** `exitwatch record`; resolves with the exit code. */
export async function recordCommand(args: readonly string[]): Promise<number> {
  const settings = parse(args);
  switch (settings.action) {
    case 'print-unit':
      process.stdout.write(recordUnit(settings.unit));
      return 0;
    case 'install':
      return report(installUnit(settings.unit), 'installed exitwatch-record.service');
    case 'uninstall':
      return uninstall(settings);
    case 'record':
      return record(settings);
  }
}

type Settings = ReturnType<typeof parse>;

async function record(settings: Settings): Promise<number> {
  const { stateDir, pinDir, gid, rate, matches, keeps, json, commandLines } = settings;
  const say = (event: object, text: string) => {
    process.stdout.write(`${json ? toJsonLine(event) : escapeText(text)}\n`);
  };
  let status = '';
  const tellStatus = (text: string) => {
    notifyService(`STATUS=${text.replaceAll('\n', ' ')}`);
  };
  const recording = new Recording({
    ...{ stateDir, pinDir, gid, rate, matches, keeps, commandLines },
    onTrouble: (error) => {
      const message = error?.message ?? 'the journal can be written again';
      say({ event: 'warning', message }, `WARNING: ${message}`);
      tellStatus(error === null ? status : message);
    },
  });
  try {
    if (gid !== undefined) openToGroup(stateDir, gid);
  } catch (error) {
    await recording.close();
    throw error;
  }
  const signalled = untilSignalled();
  let rest: (() => void) | undefined;
  let isEnding = false;
  const started = recording.start().then((ready) => {
    if (isEnding) return;
    rest = keepServiceAlive();
    const dir = journalDir(stateDir);
    status = `${describeWatch(ready, [])}; journal: ${dir}`;
    say({ ...ready, dir }, status);
    const { memory, memoryDowngrade } = ready;
    if (memory === 'none') {
      const why = memoryDowngrade?.detail ?? 'there is no recorder';
      const message = `what ends while this command does not run will be missing: ${why}`;
      say({ event: 'warning', message }, `WARNING: ${message}`);
    }
    notifyService('READY=1');
    tellStatus(status);
  });
  const failure = await Promise.race([
    signalled,
    recording.failed,
    started.then(() => Promise.race([signalled, recording.failed])),
  ]).catch((error: unknown) => error);
  isEnding = true;
  started.catch(() => undefined);
  notifyService('STOPPING=1');
  rest?.();
  await recording.close();
  if (failure === undefined) return 0;
  process.stderr.write(`exitwatch: ${escapeText(describeError(failure))}\n`);
  return EXIT_FAILED;
}

/**
 * The group must be able to reach the journal. A directory that others can reach is somebody else's, such as /srv, and
 * stays as it is.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`
 */
function openToGroup(stateDir: string, gid: number): void {
  try {
    const { mode, uid, gid: group } = statSync(stateDir);
    const isOpen = (mode & 0o001) !== 0 || (group === gid && (mode & 0o010) !== 0);
    if (isOpen) return;
    // As we make it, perhaps for another group than before.
    const isOurs = uid === process.geteuid?.() && (mode & 0o027) === 0;
    if (!isOurs) throw new Error('it belongs to another group');
    chownSync(stateDir, -1, gid);
    chmodSync(stateDir, 0o750);
  } catch (cause) {
    const detail = `${JSON.stringify(stateDir)} cannot be opened to the group: ${reasonOf(cause)}`;
    throw new ExitwatchError('ERR_EXITWATCH_STATE_DIR', detail, { cause });
  }
}

function uninstall(settings: Settings): number {
  const { stateDir, pinDir } = installedFolders() ?? settings;
  const failure = uninstallUnit();
  if (failure === null) removeRecorder(pinDir, recorderDir(stateDir));
  return report(failure, `removed exitwatch-record.service; the journal is still in ${stateDir}`);
}

function report(failure: string | null, success: string): number {
  if (failure === null) process.stdout.write(`${escapeText(success)}\n`);
  else process.stderr.write(`exitwatch: ${escapeText(failure)}\n`);
  return failure === null ? 0 : EXIT_FAILED;
}

const ACTIONS = ['install', 'uninstall', 'print-unit'] as const;

function parse(args: readonly string[]) {
  const { values } = parseArguments({
    args: [...args],
    options: {
      'state-dir': { type: 'string', default: DEFAULT_STATE_DIR },
      group: { type: 'string' },
      match: { type: 'string', multiple: true, default: [] as string[] },
      rate: { type: 'string' },
      ...COMMAND_LINE_OPTIONS,
      'pin-dir': { type: 'string', default: DEFAULT_PINS },
      json: { type: 'boolean', default: false },
      install: { type: 'boolean', default: false },
      uninstall: { type: 'boolean', default: false },
      'print-unit': { type: 'boolean', default: false },
    },
  });
  const actions = ACTIONS.filter((name) => values[name]);
  if (actions.length > 1) {
    throw new UsageError('record accepts only one of --install, --uninstall and --print-unit');
  }
  const { group } = values;
  const stateDir = resolve(values['state-dir']);
  const pinDir = resolve(values['pin-dir']);
  return {
    action: actions[0] ?? ('record' as const),
    stateDir,
    commandLines: parseCommandLines(values),
    pinDir,
    gid: group === undefined ? undefined : parseGroup(group),
    matches: parseMatches(values.match),
    keeps: keptBy(values.match),
    rate: values.rate === undefined ? Infinity : parseInteger('--rate', values.rate),
    json: values.json,
    unit: { stateDir, pinDir, group, args: unitArguments(args) },
  };
}

/** The options for the service, which has another working directory. */
function unitArguments(args: readonly string[]): string[] {
  const isPath = (name: string | undefined) => name === '--state-dir' || name === '--pin-dir';
  return args
    .filter((arg) => !ACTIONS.some((name) => arg === `--${name}`))
    .map((arg, i, all) => {
      const [name, ...value] = arg.split('=');
      if (isPath(all[i - 1])) return resolve(arg);
      return isPath(name) && value.length > 0 ? `${name}=${resolve(value.join('='))}` : arg;
    });
}

/** The id of a group, given by id or name. @throws UsageError */
function parseGroup(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const { stdout } = spawnSync('getent', ['group', '--', text], { encoding: 'utf8' });
  const gid = /^[^:]*:[^:]*:(\d+):/.exec(stdout)?.[1];
  if (gid !== undefined) return Number(gid);
  throw new UsageError(`unknown group ${JSON.stringify(text)}`);
}
