import { ProcessState } from '../native/abi.js';
import { translateFailure } from '../native/failures.js';
import { addonRefusal, loadAddon } from '../native/load-addon.js';
import { bootId } from '../boot-id.js';
import { ExitwatchError } from '../errors.js';
import { isSameProcess, lookUp, pidNamespace, type ProcessIdentity } from '../process-identity.js';
import { processTable } from '../process-table/process-table.js';
import { signalNumber, type SignalName } from '../wait-status.js';

/** What became of a signal, or of a mere look. */
export interface Signalled {
  life: 'alive' | 'dead' | 'unknown';
  /**
   * Nothing could come between the look at the process and the signal: a pidfd held on to it. Without
   * pidfds the pid may have become another's in between.
   */
  isAtomic: boolean;
}

/**
 * Sends a signal to this very process, unless it is dead; without a signal, looks at it.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_NOT_PERMITTED`, `ERR_EXITWATCH_NO_PROC`, `ERR_EXITWATCH_SYSTEM`
 */
export function signalProcess(identity: ProcessIdentity, signal?: SignalName): Signalled {
  if (identity.bootId !== bootId()) return { life: 'dead', isAtomic: true };
  if (identity.pidNamespace !== pidNamespace()) return { life: 'unknown', isAtomic: true };
  return signalByPidfd(identity, signal) ?? signalByPid(identity, signal);
}

/** `null` where there are no pidfds. */
function signalByPidfd(identity: ProcessIdentity, signal?: SignalName): Signalled | null {
  if (addonRefusal() !== null) return null;
  const { pid, startTicks, inode } = identity;
  const number = signal === undefined ? 0 : signalNumber(signal);
  try {
    const life = loadAddon().signal(pid, startTicks, inode ?? 0, number);
    if (life === ProcessState.unknown) return { life: 'unknown', isAtomic: true };
    return { life: life === ProcessState.alive ? 'alive' : 'dead', isAtomic: true };
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
    return { life: 'dead', isAtomic };
  const sight = processTable().lookNow(pid);
  if (sight === 'unknown') return { life: 'unknown', isAtomic };
  if (sight === null || sight.isDead) return { life: 'dead', isAtomic };
  if (signal === undefined) return { life: 'alive', isAtomic };
  try {
    process.kill(pid, process.platform === 'linux' ? signalNumber(signal) : signal);
    return { life: 'alive', isAtomic };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ESRCH') return { life: 'dead', isAtomic };
    if (code === 'EPERM') throw notPermitted(pid, error);
    throw error;
  }
}

function notPermitted(pid: number, cause: unknown): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_NOT_PERMITTED',
    `process ${pid} is another user's, and may not be signalled`,
    { cause, remedy: 'do it as that user, or with CAP_KILL' },
  );
}
