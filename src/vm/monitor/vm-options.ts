import {
  checkDate,
  checkOneOf,
  checkOptionNames,
  checkPath,
  invalidOption,
} from '../../common/options.js';
import { checkIdentity, type ProcessIdentity } from '../../identity/process-identity.js';

import type { QemuCommand } from '../qemu/qemu-command.js';
import type { VmDriver } from '../control/vm-driver.js';

/** Which virtual machine to watch, and where its witnesses are. */
export interface VmOptions {
  /** For people, and for whom it is that events are about. */
  name: string;
  /**
   * Its process: a pid, a pidfile, or an identity; beside one of the others, a pidfile is looked for when it
   * has ended. With an identity, also one that has ended before: the verdict is then what its event log,
   * its log and the intents tell.
   */
  pid?: number;
  pidfile?: string;
  identity?: ProcessIdentity;
  /** Its QMP socket, for us alone: QEMU serves one client of a socket at a time. */
  qmp?: string;
  /** The socket was opened by another process, and handed over: it need not be the machine's own. */
  qmpIsInherited?: boolean;
  /** What `eventLogArguments()` has it write: one file for each start, or one for all of them. */
  eventLog?: string;
  /** It may have been started without one: that there is none is no warning. */
  eventLogIsOptional?: boolean;
  /**
   * Of one that has ended before: when it had, at the latest. What an event log that later starts share
   * has of later is not its own.
   */
  endedBefore?: Date;
  /** What the event log has of up to then is an earlier start's. */
  eventsAfter?: Date;
  /** When it was seen to be there: where an event log is shared, and its start is not known any more. */
  seenAt?: Date;
  /**
   * Whether an agent in its guest could have it power off, which no event tells: `'none'`; `'held'`: by a
   * socket that nobody but its manager can use; `'open'`. By its command line, where nothing is said.
   */
  agent?: 'none' | 'held' | 'open';
  /** Of one that has ended before: what its command line said. */
  command?: QemuCommand;
  /** What `logArguments()` has it write. */
  log?: string;
  /** How it is stopped, if not by its QMP socket. */
  driver?: VmDriver;
}

const KEYS = [
  ...['name', 'pid', 'pidfile', 'identity', 'qmp', 'qmpIsInherited', 'eventLog'],
  ...['eventLogIsOptional', 'endedBefore', 'eventsAfter', 'seenAt', 'agent', 'command'],
  ...['log', 'driver'],
];

const AGENTS = ['none', 'held', 'open'] as const;

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`, `ERR_EXITWATCH_INVALID_IDENTITY` */
export function checkVmOptions(options: VmOptions): void {
  checkOptionNames(options, KEYS);
  if (typeof options.name !== 'string' || options.name === '')
    throw invalidOption('name is a text');
  for (const key of ['pidfile', 'qmp', 'eventLog', 'log'] as const) {
    checkPath(key, options[key]);
  }
  const { pid, pidfile, identity } = options;
  const isAmbiguous = pid !== undefined && identity !== undefined;
  if (isAmbiguous || (pid ?? pidfile ?? identity) === undefined) {
    throw invalidOption('a process is a pid, a pidfile or an identity');
  }
  if (identity !== undefined) checkIdentity(identity);
  for (const key of ['endedBefore', 'eventsAfter', 'seenAt'] as const) {
    checkDate(key, options[key]);
  }
  const { agent } = options;
  if (agent !== undefined) checkOneOf('agent', agent, AGENTS);
  if (options.driver !== undefined) checkDriver(options.driver);
}

function checkDriver(driver: unknown): void {
  const { state, powerDown, forceOff } = (driver ?? {}) as Record<string, unknown>;
  const isOne = [state, powerDown, forceOff].every((each) => typeof each === 'function');
  if (!isOne) throw invalidOption('driver has state(), powerDown() and forceOff()');
}
