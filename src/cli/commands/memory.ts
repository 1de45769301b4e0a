import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';

import {
  addRecorder,
  listRecorders,
  removeRecorder,
  type RecorderReport,
} from '../../memory/recorder-list.js';
import { DEFAULT_PINS, DEFAULT_SIZE } from '../../memory/recorder-pins.js';
import { NoRecorder } from '../../memory/no-recorder.js';
import { formatDuration } from '../args/duration.js';
import { parseArguments } from '../args/parse-arguments.js';
import { UsageError } from '../args/usage-error.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_FAILED } from '../output/exit-codes.js';

export const MEMORY_HELP = `Lists the recorders, which remember how processes exit while nobody watches.

Usage: exitwatch memory [--pin-dir DIR] [--json]
       exitwatch memory --create --state-dir DIR [--owner USER] [--scope S]
       exitwatch memory --remove --state-dir DIR

  --state-dir DIR  the directory of the monitor that uses the recorder
  --create         creates a recorder; requires root
  --owner USER     the user who may use it; default: you
  --scope S        what it records: watched (default), or all
  --remove         removes the recorder, and what it has recorded
  --pin-dir DIR    where recorders are pinned; default: ${DEFAULT_PINS}
  --json           one JSON object a line
  --help           this text

Exit codes: 0 success, 2 wrong usage, 125 failure.
`;

/** `exitwatch memory`; resolves with the exit code. */
export function memoryCommand(args: readonly string[]): Promise<number> {
  const { create, remove, json, root, stateDir, owner, scope } = parse(args);
  if (create || remove) {
    if (stateDir === undefined) {
      throw new UsageError(`memory --${create ? 'create' : 'remove'} requires --state-dir DIR`);
    }
    if (create) return Promise.resolve(createFor(root, resolve(stateDir), owner, scope, json));
    const removed = removeRecorder(root, resolve(stateDir));
    for (const folder of removed) {
      print(json ? toJsonLine({ event: 'removed', folder }) : `removed ${folder}`);
    }
    if (removed.length > 0) return Promise.resolve(0);
    process.stderr.write(`exitwatch: no recorder of ${escapeText(stateDir)} is pinned there\n`);
    return Promise.resolve(EXIT_FAILED);
  }
  const recorders = listRecorders(root);
  for (const recorder of recorders) {
    print(json ? toJsonLine({ event: 'recorder', ...recorder }) : describe(recorder));
  }
  if (recorders.length === 0 && !json) print(`no recorder is pinned in ${root}`);
  return Promise.resolve(0);
}

function createFor(
  root: string,
  stateDir: string,
  owner: string | undefined,
  scope: 'watched' | 'all',
  json: boolean,
): number {
  const uid = owner === undefined ? undefined : uidOf(owner);
  const size = { ...DEFAULT_SIZE, ...(scope === 'watched' ? { ringBytes: 0 } : {}) };
  try {
    const folder = addRecorder({
      root,
      stateDir,
      size,
      ...(uid === undefined ? {} : { owner: uid }),
    });
    print(json ? toJsonLine({ event: 'created', folder, stateDir }) : `created ${folder}`);
    return 0;
  } catch (error) {
    if (!(error instanceof NoRecorder)) throw error;
    const { detail, remedy } = error.downgrade;
    const advice = remedy === null ? '' : `; ${remedy}`;
    process.stderr.write(`exitwatch: cannot create a recorder: ${escapeText(detail)}${advice}\n`);
    return EXIT_FAILED;
  }
}

function describe({ folder, stateDir, version, owner, usage }: RecorderReport): string {
  const head = `${escapeText(stateDir)} (user ${owner}, exitwatch ${escapeText(version)})`;
  if (usage === null) return [head, row('pins', folder), row('', 'of another version')].join('\n');
  const { watched, slots, ringBytes, ringUsed, lostExits, lostSignals, leaseMs } = usage;
  const share = (used: number, all: number) => `${Math.round((100 * used) / all)} % full`;
  // Those of the programs for exits count among the lost exits.
  const misses = usage.programs
    .filter(({ name }) => !['exit', 'backup', 'notice'].includes(name))
    .reduce((sum, program) => sum + program.misses, 0);
  const measured = usage.programs.filter(({ runs }) => runs > 0);
  const costs = measured.map(({ name, runs, runNs }) => `${name} ${Math.round(runNs / runs)} ns`);
  return [
    head,
    row('pins', folder),
    row('watched', `${watched} of ${slots} processes`),
    row('exits', ringBytes === 0 ? 'of watched processes only' : share(ringUsed, ringBytes)),
    row('signals', share(usage.signalUsed, usage.signalBytes)),
    row('lost', `${lostExits} exits, ${lostSignals} signals, ${misses} runs of programs`),
    row('cost', costs.length === 0 ? 'unknown: kernel.bpf_stats_enabled is 0' : costs.join(', ')),
    row('lease', leaseMs === 0 ? 'over: it has stopped' : formatDuration(leaseMs)),
  ].join('\n');
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(9)}${text}`;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** The next one means "unchanged" to chown(2). */
const MOST_UID = 2 ** 32 - 2;

/** The id of a user, by name or number. */
function uidOf(owner: string): number {
  if (/^\d{1,10}$/.test(owner) && Number(owner) <= MOST_UID) return Number(owner);
  const { stdout, status } = spawnSync('id', ['-u', '--', owner], { encoding: 'utf8' });
  if (status !== 0) throw new UsageError(`there is no user ${JSON.stringify(owner)}`);
  return Number(stdout);
}

function parse(args: readonly string[]) {
  const { values } = parseArguments({
    args: [...args],
    options: {
      create: { type: 'boolean', default: false },
      remove: { type: 'boolean', default: false },
      owner: { type: 'string' },
      scope: { type: 'string' },
      'state-dir': { type: 'string' },
      'pin-dir': { type: 'string', default: DEFAULT_PINS },
      json: { type: 'boolean', default: false },
    },
  });
  const { create, remove, owner, json } = values;
  if (create && remove) throw new UsageError('use --create or --remove, not both');
  if (!create && owner !== undefined) throw new UsageError('--owner requires --create');
  if (!create && values.scope !== undefined) throw new UsageError('--scope requires --create');
  if (!create && !remove && values['state-dir'] !== undefined) {
    throw new UsageError('--state-dir requires --create or --remove');
  }
  const wanted = values.scope ?? 'watched';
  const scope = (['watched', 'all'] as const).find((each) => each === wanted);
  if (scope === undefined) {
    throw new UsageError(`--scope must be watched or all, not ${JSON.stringify(wanted)}`);
  }
  const { 'state-dir': stateDir, 'pin-dir': root } = values;
  return { create, remove, owner, json, scope: scope, stateDir, root };
}
