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
export const MACHINE_HELP = `  --control-dir DIR  the directory with NAME's files. NAME.pid or NAME.qmp leads
                     to its process; commands go to NAME.agent and NAME.control
                     (or NAME.qmp without NAME.control)
  --state-dir DIR    the daemon's state directory: records each step in
                     DIR/intents beforehand. Without --control-dir, the daemon's
                     record says which process NAME is
  --pid N            selects the machine by its pid
  --pidfile FILE     selects the machine by its pidfile
  --qmp SOCKET       its QMP socket; nobody else may be connected to it
  --agent SOCKET     the socket of its guest agent (qemu-ga); nobody else may be
                     connected to it
  --inherited        another process opened these sockets and handed them over
                     to the machine
  --intent-log FILE  records each step in this file beforehand
  --reason TEXT      the reason to record in the intent log`;

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
    throw new UsageError(`${command} requires exactly one of NAME, --pid and --pidfile`);
  }
  const intentLog =
    values['intent-log'] ?? (stateDir === undefined ? undefined : intentLogPath(stateDir));
  if (intentLog === undefined) {
    throw new UsageError(`${command} requires --state-dir or --intent-log, to record what it does`);
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
    throw new UsageError(`${JSON.stringify(name)} is not a valid name of a virtual machine`);
  }
  if (controlDir !== undefined) {
    const files = (await readControlDirectory(controlDir)).vms.get(name);
    if (files !== undefined) return byFiles(files);
  }
  if (stateDir !== undefined) {
    const record = await readVmRecord(stateDir, name);
    if (record !== null) return record.state === 'running' ? record.identity : null;
  } else if (controlDir === undefined) {
    throw new UsageError(`${command} NAME requires --control-dir or --state-dir`);
  }
  throw new NoSuchMachine(`unknown virtual machine ${name}`);
}

function byPid(text: string): ProcessIdentity {
  const pid = /^\d+$/.test(text) ? Number(text) : NaN;
  try {
    const identity = identifyOrNone(pid);
    if (identity !== null) return identity;
  } catch (error) {
    const isUsage = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_INVALID_PID';
    throw isUsage ? new UsageError(`--pid must be a pid, not ${JSON.stringify(text)}`) : error;
  }
  throw new NoSuchMachine(`no process has pid ${pid}`);
}

/** In the same way as the daemon. */
async function byFiles(files: ControlFiles): Promise<ProcessIdentity | null> {
  const owner = await ownerOf(files);
  if (owner.state === 'found') return owner.identity;
  if (owner.state === 'ended') return null;
  if (owner.error !== null) throw owner.error;
  const { pidfile, name } = files;
  throw new NoSuchMachine(
    pidfile === null ? `the process of ${name} is unknown` : noPidfile(pidfile),
  );
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
