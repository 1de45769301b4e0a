import { lstatSync } from 'node:fs';

import { ExitwatchError } from '../../common/errors.js';
import { describeProgram, programOf } from '../../process/executable.js';
import { isAlive } from '../../process/liveness.js';
import { mayHaveStartedAfter, readPidfile, type Pidfile } from '../../process/pidfile.js';
import {
  identifyOrNone,
  isSameProcess,
  type ProcessIdentity,
} from '../../identity/process-identity.js';
import { processTable } from '../../identity/platform-table.js';
import { listenerOf } from '../../native/socket-peer.js';
import { runsHypervisor } from '../vm-program.js';

import type { ControlFiles } from './control-files.js';

/** Which process owns some files. */
export type VmOwner =
  | { state: 'found'; identity: ProcessIdentity; uid: number | null }
  /** A process that has exited, and nothing says which; `madeAt`: when it made them. */
  | { state: 'ended'; madeAt: Date }
  /** Unknown; perhaps only for now. */
  | { state: 'unknown'; error: Error | null };

type Found = VmOwner & { state: 'found' };

/** Which process owns a virtual machine's files: by its pidfile, else by its socket's listener. */
export async function ownerOf({ pidfile, qmp }: ControlFiles): Promise<VmOwner> {
  const named = pidfile === null ? null : await byPid(pidfile);
  if (named?.owner?.state === 'found' && !named.isNumber) return named.owner;
  const bySocket = qmp === null ? null : await byListener(qmp);
  if (named?.owner?.state === 'found') return checked(pidfile ?? '', named.owner, bySocket);
  if (bySocket?.state === 'found') return bySocket;
  // A socket that nobody listens at does not make up for a pidfile that cannot be read.
  const states = [named?.owner ?? null, bySocket].filter((each) => each !== null);
  return (
    states.find(({ state }) => state === 'unknown') ??
    states.find(({ state }) => state === 'ended') ?? { state: 'unknown', error: null }
  );
}

/**
 * A number alone may be of another pid namespace, as of a container: then it names a stranger here,
 * or nothing. The machine's socket, if it has one, must not contradict it.
 */
function checked(pidfile: string, owner: Found, bySocket: VmOwner | null): VmOwner {
  const { pid } = owner.identity;
  const listener = bySocket?.state === 'found' ? bySocket : null;
  if (listener !== null && isSameProcess(listener.identity, owner.identity)) return owner;
  if (!runsHypervisor(pid)) {
    const program = describeProgram(programOf(pid));
    const reason = `process ${pid} runs ${program}, which is no hypervisor`;
    return listener ?? unverified(pidfile, reason);
  }
  // A manager may open the socket and hand it over; another machine does not.
  if (listener === null || !runsHypervisor(listener.identity.pid)) return owner;
  const reason = `its socket belongs to process ${listener.identity.pid}, not to ${pid}`;
  return unverified(pidfile, reason);
}

function unverified(pidfile: string, reason: string): VmOwner {
  const detail = `${JSON.stringify(pidfile)} names another process, perhaps of a container: ${reason}`;
  const remedy = 'write it with writePidfile(), or by a program of this pid namespace';
  const error = new ExitwatchError('ERR_EXITWATCH_NOT_VERIFIED', detail, { remedy });
  return { state: 'unknown', error };
}

/** `isNumber`: it holds a pid alone, which may have had other processes. */
async function byPid(path: string): Promise<{ owner: VmOwner | null; isNumber: boolean }> {
  const isNumber = true;
  let pidfile: Pidfile;
  try {
    pidfile = await readPidfile(path);
  } catch (error) {
    const isGone = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_NO_PIDFILE';
    return { owner: isGone ? null : { state: 'unknown', error: error as Error }, isNumber };
  }
  // It identifies its process, even one that has exited.
  if (pidfile.identity !== null) {
    const { identity, pid } = pidfile;
    return { owner: { state: 'found', identity, uid: uidOf(pid) }, isNumber: false };
  }
  return { owner: processOf(path, pidfile.pid, null), isNumber };
}

async function byListener(path: string): Promise<VmOwner | null> {
  const listener = await listenerOf(path);
  if (listener === 'nobody') return ended(path);
  if (listener === 'unknown') {
    const detail = `cannot tell which process listens on ${JSON.stringify(path)}; create a pidfile for it`;
    return { state: 'unknown', error: new ExitwatchError('ERR_EXITWATCH_CONTROL_DIR', detail) };
  }
  return processOf(path, listener.pid, listener.inode === 0 ? null : listener.inode);
}

/** The process that has this pid now, unless the pid was another's when the file was made. */
function processOf(path: string, pid: number, inode: number | null): VmOwner | null {
  try {
    const identity = identifyOrNone(pid);
    if (identity === null || isAlive(identity) === 'dead') return ended(path);
    const isSame =
      inode !== null && identity.inode !== null
        ? inode === identity.inode
        : !mayHaveStartedAfter(identity, path);
    if (isSame) return { state: 'found', identity, uid: uidOf(pid) };
    const detail =
      `${JSON.stringify(path)} is older than process ${pid}, which it names: ` +
      'another process left it behind, or the clock was set';
    return { state: 'unknown', error: new ExitwatchError('ERR_EXITWATCH_CONTROL_DIR', detail) };
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return isGone ? null : { state: 'unknown', error: error as Error };
  }
}

/** `null`: the file is gone as well. */
function ended(path: string): VmOwner | null {
  const status = lstatSync(path, { throwIfNoEntry: false });
  return status === undefined ? null : { state: 'ended', madeAt: status.mtime };
}

function uidOf(pid: number): number | null {
  const lookup = processTable().lookNow(pid);
  return lookup === null || lookup === 'unknown' ? null : lookup.uid;
}
