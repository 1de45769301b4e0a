import { lstat } from 'node:fs/promises';
import { join } from 'node:path';

import { ExitwatchError } from '../../common/errors.js';
import { identifyOrNone, type ProcessIdentity } from '../../identity/process-identity.js';
import { ownerOf } from '../../vm/directory/vm-owner.js';
import {
  COMMAND_SUFFIXES,
  isVmName,
  readControlDirectory,
  type ControlFiles,
} from '../../vm/directory/control-files.js';
import { readVmRecord } from '../../vm/index.js';
import { intentLogPath } from '../../vm/daemon/state-file.js';

import { noPidfile } from './process-argument.js';
import { UsageError } from './usage-error.js';

/** Nothing is known about the given machine. */
export class NoSuchMachine extends Error {}

/** The options that select a virtual machine and its sockets. */
export const MACHINE_OPTIONS = {
  pid: { type: 'string' },
  pidfile: { type: 'string' },
  'control-dir': { type: 'string' },
  'state-dir': { type: 'string' },
  qmp: { type: 'string' },
  agent: { type: 'string' },
  inherited: { type: 'boolean', default: false },
  'intent-log': { type: 'string' },
  reason: { type: 'string' },
} as const;

/** Help text for {@link MACHINE_OPTIONS}. */
export const MACHINE_HELP = `  --control-dir DIR  where NAME has its files: its process is found by NAME.pid or NAME.qmp; it is
                     talked to by NAME.agent and NAME.control, or NAME.qmp where there is no
                     NAME.control
  --state-dir DIR    the daemon's: what it is about to do is written to DIR/intents before; without
                     --control-dir, NAME is the process that the daemon knows it as
  --pid N            this process
  --pidfile FILE     the process that this names
  --qmp SOCKET       its QMP socket, that nobody else is connected to
  --agent SOCKET     the channel of its guest's agent (qemu-ga), that nobody else is connected to
  --inherited        these sockets were opened by another process, and handed over to it
  --intent-log FILE  where it is written down what is about to be done
  --reason TEXT      why, for the intent log`;

/** The parsed {@link MACHINE_OPTIONS}. */
export interface MachineValues {
  pid?: string | undefined;
  pidfile?: string | undefined;
  'control-dir'?: string | undefined;
  'state-dir'?: string | undefined;
  qmp?: string | undefined;
  agent?: string | undefined;
  inherited: boolean;
  'intent-log'?: string | undefined;
  reason?: string | undefined;
}

/** The selected virtual machine. */
export interface Machine {
  name: string;
  /** `null`: it has exited. */
  identity: ProcessIdentity | null;
  qmp: string | undefined;
  agent: string | undefined;
  /** The process that must own these sockets; `undefined`: any process may. */
  owner: number | undefined;
  intentLog: string;
}

/**
 * Finds the machine without writing anything.
 *
 * Rejects with a {@link UsageError}, a {@link NoSuchMachine}, and like `readPidfile()` and
 * `readVmRecord()`.
 */
export async function findMachine(
  command: string,
  name: string | undefined,
  values: MachineValues,
): Promise<Machine> {
  const { pid, pidfile, 'control-dir': controlDir, 'state-dir': stateDir } = values;
  if ([name, pid, pidfile].filter((each) => each !== undefined).length !== 1) {
    throw new UsageError(`${command} takes one of NAME, --pid and --pidfile`);
  }
  const intentLog =
    values['intent-log'] ?? (stateDir === undefined ? undefined : intentLogPath(stateDir));
  if (intentLog === undefined) {
    throw new UsageError(
      `${command} takes --state-dir or --intent-log: it writes down what it does`,
    );
  }
  const found = await identityOf(command, { name, pid, pidfile, controlDir, stateDir });
  const sockets =
    name === undefined || controlDir === undefined ? {} : await socketsOf(controlDir, name);
  return {
    name: name ?? pid ?? pidfile ?? '',
    identity: found,
    qmp: values.qmp ?? sockets.qmp,
    agent: values.agent ?? sockets.agent,
    owner: values.inherited ? undefined : found?.pid,
    intentLog,
  };
}

interface Wanted {
  name: string | undefined;
  pid: string | undefined;
  pidfile: string | undefined;
  controlDir: string | undefined;
  stateDir: string | undefined;
}

async function identityOf(command: string, wanted: Wanted): Promise<ProcessIdentity | null> {
  const { name, pid, pidfile, controlDir, stateDir } = wanted;
  if (pid !== undefined) return byPid(pid);
  if (pidfile !== undefined) {
    return byFiles({ name: '', pidfile, qmp: null, eventLog: null, log: null, signature: '' });
  }
  if (name === undefined || !isVmName(name)) {
    throw new UsageError(`${JSON.stringify(name)} is no name of a virtual machine`);
  }
  if (controlDir !== undefined) {
    const files = (await readControlDirectory(controlDir)).vms.get(name);
    if (files !== undefined) return byFiles(files);
  }
  if (stateDir !== undefined) {
    const record = await readVmRecord(stateDir, name);
    if (record !== null) return record.state === 'running' ? record.identity : null;
  } else if (controlDir === undefined) {
    throw new UsageError(`${command} NAME takes --control-dir or --state-dir`);
  }
  throw new NoSuchMachine(`nothing is known of ${name}`);
}

function byPid(text: string): ProcessIdentity {
  const pid = /^\d+$/.test(text) ? Number(text) : NaN;
  try {
    const identity = identifyOrNone(pid);
    if (identity !== null) return identity;
  } catch (error) {
    const isUsage = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_INVALID_PID';
    throw isUsage ? new UsageError(`--pid takes a pid, not ${JSON.stringify(text)}`) : error;
  }
  throw new NoSuchMachine(`there is no process ${pid}`);
}

/** In the same way as the daemon. */
async function byFiles(files: ControlFiles): Promise<ProcessIdentity | null> {
  const owner = await ownerOf(files);
  if (owner.state === 'found') return owner.identity;
  if (owner.state === 'ended') return null;
  if (owner.error !== null) throw owner.error;
  const { pidfile, name } = files;
  throw new NoSuchMachine(pidfile === null ? `no process is known of ${name}` : noPidfile(pidfile));
}

async function socketsOf(folder: string, name: string): Promise<{ qmp?: string; agent?: string }> {
  const find = async (...suffixes: string[]) => {
    for (const suffix of suffixes) {
      const path = join(folder, `${name}${suffix}`);
      // No symbolic link: another user may decide where it leads.
      const status = await lstat(path).catch(() => null);
      if (status?.isSocket() === true) return path;
    }
    return undefined;
  };
  const qmp = await find(COMMAND_SUFFIXES.qmp, '.qmp');
  const agent = await find(COMMAND_SUFFIXES.agent);
  return { ...(qmp === undefined ? {} : { qmp }), ...(agent === undefined ? {} : { agent }) };
}
