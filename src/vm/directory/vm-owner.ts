import { lstatSync } from 'node:fs';

import { ExitwatchError } from '../../common/errors.js';
import { isAlive } from '../../process/liveness.js';
import { mayHaveStartedAfter, readPidfile, type Pidfile } from '../../process/pidfile.js';
import { identifyOrNone, type ProcessIdentity } from '../../identity/process-identity.js';
import { processTable } from '../../identity/platform-table.js';
import { listenerOf } from '../../native/socket-peer.js';

import type { ControlFiles } from './control-files.js';

/** Which process owns some files. */
export type VmOwner =
  | { state: 'found'; identity: ProcessIdentity; uid: number | null }
  /** A process that has exited, and nothing says which; `madeAt`: when it made them. */
  | { state: 'ended'; madeAt: Date }
  /** Unknown; perhaps only for now. */
  | { state: 'unknown'; error: Error | null };

/** Which process owns a virtual machine's files: by its pidfile, else by its socket's listener. */
export async function ownerOf(files: ControlFiles): Promise<VmOwner> {
  const byPidfile = files.pidfile === null ? null : await byPid(files.pidfile);
  if (byPidfile?.state === 'found') return byPidfile;
  const bySocket = files.qmp === null ? null : await byListener(files.qmp);
  if (bySocket?.state === 'found') return bySocket;
  // A socket that nobody listens at does not make up for a pidfile that cannot be read.
  const states = [byPidfile, bySocket].filter((each) => each !== null);
  return (
    states.find(({ state }) => state === 'unknown') ??
    states.find(({ state }) => state === 'ended') ?? { state: 'unknown', error: null }
  );
}

async function byPid(path: string): Promise<VmOwner | null> {
  let pidfile: Pidfile;
  try {
    pidfile = await readPidfile(path);
  } catch (error) {
    const isGone = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_NO_PIDFILE';
    return isGone ? null : { state: 'unknown', error: error as Error };
  }
  // It identifies its process, even one that has exited.
  if (pidfile.identity !== null) {
    return { state: 'found', identity: pidfile.identity, uid: uidOf(pidfile.pid) };
  }
  return processOf(path, pidfile.pid, null);
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
