import { ExitwatchError } from '../common/errors.js';
import { type SignalName, signalNumber } from '../events/wait-status.js';
import { bootId } from '../identity/boot-id.js';
import { processTable } from '../identity/platform-table.js';
import {
  type ProcessIdentity,
  isSameProcess,
  lookUp,
  pidNamespace,
} from '../identity/process-identity.js';
import { ProcessState } from '../native/abi.js';
import { translateFailure } from '../native/failures.js';
import { addonRefusal, loadAddon } from '../native/load-addon.js';

/** The result of a signal, or of a mere check. */
export interface Signalled {
  liveness: 'alive' | 'dead' | 'unknown';
  /**
   * The check and the signal hit the same process, because a pidfd refers to it. Without pidfds,
   * the pid may have been reused in between.
   */
  isAtomic: boolean;
}

/**
 * Sends a signal to exactly this process unless it is dead. Without a signal, only checks it.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_NOT_PERMITTED`, `ERR_EXITWATCH_NO_PROC`,
 *   `ERR_EXITWATCH_SYSTEM`
 */
export function signalProcess(identity: ProcessIdentity, signal?: SignalName): Signalled {
  if (identity.bootId !== bootId()) return { liveness: 'dead', isAtomic: true };
  if (identity.pidNamespace !== pidNamespace()) return { liveness: 'unknown', isAtomic: true };
  return signalByPidfd(identity, signal) ?? signalByPid(identity, signal);
}

/** `null` if pidfds are not available. */
function signalByPidfd(identity: ProcessIdentity, signal?: SignalName): Signalled | null {
  if (addonRefusal() !== null) return null;
  const { pid, startTicks, inode } = identity;
  const number = signal === undefined ? 0 : signalNumber(signal);
  try {
    const state = loadAddon().signal(pid, startTicks, inode ?? 0, number);
    if (state === ProcessState.unknown) return { liveness: 'unknown', isAtomic: true };
    return { liveness: state === ProcessState.alive ? 'alive' : 'dead', isAtomic: true };
  } catch (thrown) {
    const error = translateFailure(thrown);
    if (!(error instanceof ExitwatchError)) throw error;
    if (error.code === 'ERR_EXITWATCH_NO_PIDFD') return null;
    if (error.errno === EPERM) throw notPermitted(pid, error);
    throw error;
  }
}

const EPERM = 1;

function signalByPid(identity: ProcessIdentity, signal?: SignalName): Signalled {
  const isAtomic = false;
  const { pid } = identity;
  const found = lookUp(pid);
  if (typeof found === 'string' || !isSameProcess(found, identity))
    return { liveness: 'dead', isAtomic };
  const lookup = processTable().lookNow(pid);
  if (lookup === 'unknown') return { liveness: 'unknown', isAtomic };
  if (lookup === null || lookup.isDead) return { liveness: 'dead', isAtomic };
  if (signal === undefined) return { liveness: 'alive', isAtomic };
  try {
    process.kill(pid, process.platform === 'linux' ? signalNumber(signal) : signal);
    return { liveness: 'alive', isAtomic };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ESRCH') return { liveness: 'dead', isAtomic };
    if (code === 'EPERM') throw notPermitted(pid, error);
    throw error;
  }
}

function notPermitted(pid: number, cause: unknown): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_NOT_PERMITTED',
    `this user may not signal process ${pid}, which belongs to another user`,
    { cause, remedy: 'run as that user, or with CAP_KILL' },
  );
}
