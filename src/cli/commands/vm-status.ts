import { access } from 'node:fs/promises';

import { isAlive } from '../../process/index.js';
import { readShutdownMarker, readVmRecord, readVmRecords, type VmRecord } from '../../vm/index.js';
import { parseArguments } from '../args/parse-arguments.js';
import { UsageError } from '../args/usage-error.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_NO_SUCH_PROCESS } from '../output/exit-codes.js';
import { describeStop } from '../output/vm-text.js';

export const VM_STATUS_HELP = `Prints what the daemon knows about virtual machines, and why they ended.

Usage: exitwatch vm status [NAME] --state-dir DIR [OPTION]…

  --state-dir DIR  the daemon's state directory
  --json           prints one JSON object per line
  --help           prints this text

A machine is "ended" if its process is gone, but the daemon has not reported why
yet. Exits with 0; 127 if NAME is unknown, 125 if the directory cannot be read,
2 for wrong usage.
`;

/** `exitwatch vm status`; resolves with the exit code. */
export async function vmStatusCommand(args: readonly string[]): Promise<number> {
  const { name, stateDir, json } = parse(args);
  const records = await find(stateDir, name);
  if (records.length === 0 && name !== undefined) {
    process.stderr.write(`exitwatch: unknown virtual machine ${escapeText(name)}\n`);
    return EXIT_NO_SUCH_PROCESS;
  }
  for (const record of records) {
    const state = stateOf(record);
    const isMarked = (await readShutdownMarker(stateDir, record.name)) !== null;
    const line = json
      ? toJsonLine({ ...record, state, isMarked })
      : describe(record, state, isMarked, name !== undefined);
    process.stdout.write(`${line}\n`);
  }
  return 0;
}

/** `'ended'`: it has exited, but the daemon has not judged it yet. */
type State = 'running' | 'ended' | 'stopped' | 'unknown';

function stateOf({ state, identity }: VmRecord): State {
  if (state === 'stopped' || identity === null) return state;
  const life = isAlive(identity);
  if (life === 'unknown') return 'unknown';
  return life === 'alive' ? 'running' : 'ended';
}

async function find(stateDir: string, name: string | undefined): Promise<VmRecord[]> {
  if (name === undefined) {
    return readVmRecords(stateDir, (error) => {
      process.stderr.write(`exitwatch: ${escapeText(error.message)}\n`);
    });
  }
  const record = await readVmRecord(stateDir, name);
  if (record === null) await access(stateDir);
  return record === null ? [] : [record];
}

function describe(
  { name, identity, foundAt, lastStop, lastStopped }: VmRecord,
  state: State,
  isMarked: boolean,
  isDetailed: boolean,
): string {
  const who = state === 'stopped' || identity === null ? '' : ` (process ${identity.pid})`;
  const since = ` since ${foundAt.toISOString()}`;
  const head = `${escapeText(name)}: ${state}${state === 'stopped' ? '' : `${who}${since}`}`;
  if (lastStop === null) return head;
  const at = lastStop.exit?.exitedAt ?? lastStop.evidence.at(-1)?.at ?? null;
  const when = at === null ? '' : ` ${at.toISOString()}`;
  const mark = isMarked ? ", marked as its user's shutdown" : '';
  const ended = `${state === 'stopped' ? '' : 'previously '}stopped${when}${mark}`;
  const lines = [
    state === 'stopped' ? `${escapeText(name)}: ${ended}` : `${head}; ${ended}`,
    `  ${describeStop(lastStop)}`,
  ];
  if (!isDetailed) return lines.join('\n');
  const facts = lastStop.evidence.map(
    ({ source, text, at: time }) =>
      `  ${(time?.toISOString() ?? '').padEnd(24)}  ${source.padEnd(6)}  ${escapeText(text)}`,
  );
  const process =
    lastStopped === null ? 'unknown (it had ended before it was found)' : lastStopped.id;
  return [...lines, `  process: ${process}`, ...facts].join('\n');
}

function parse(args: readonly string[]) {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      'state-dir': { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const [name, ...more] = positionals;
  const stateDir = values['state-dir'];
  if (stateDir === undefined) {
    throw new UsageError('vm status requires --state-dir DIR');
  }
  if (more.length > 0) throw new UsageError('vm status takes only one NAME');
  return { name, stateDir, json: values.json };
}
