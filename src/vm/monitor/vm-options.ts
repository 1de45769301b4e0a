import {
  checkDate,
  checkOneOf,
  checkOptionNames,
  checkPath,
  invalidOption,
} from '../../common/options.js';
import { checkIdentity, type ProcessIdentity } from '../../identity/process-identity.js';

import type { VmDriver } from '../control/vm-driver.js';
import type { QemuFiles } from '../qemu/qemu-files.js';

/**
 * Which virtual machine to watch, and where its witnesses are.
 *
 * @see [Why a virtual machine ended](../../../docs/virtual-machines.md)
 */
export interface VmOptions extends QemuFiles {
  /** Its name in events, and for people. */
  name: string;
  /**
   * Its process: a pid, a pidfile or an identity. Beside one of the others, a pidfile is looked for
   * when the process has exited. An identity may be of a process that exited before: its event log,
   * its log and the intents then decide.
   */
  pid?: number;
  pidfile?: string;
  identity?: ProcessIdentity;
  /** How to stop it, if not over QMP; and how to observe it, if the driver has a witness. */
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
    throw invalidOption('name must be a string that is not empty');
  for (const key of ['pidfile', 'qmp', 'eventLog', 'log'] as const) {
    checkPath(key, options[key]);
  }
  const { pid, pidfile, identity } = options;
  const isAmbiguous = pid !== undefined && identity !== undefined;
  if (isAmbiguous || (pid ?? pidfile ?? identity) === undefined) {
    throw invalidOption(
      'give the process as a pid, a pidfile or an identity; pid and identity exclude each other',
    );
  }
  if (identity !== undefined) checkIdentity(identity);
  for (const key of ['endedBefore', 'eventsAfter', 'seenAt'] as const) {
    checkDate(key, options[key]);
  }
  const { agent } = options;
  if (agent !== undefined) checkOneOf('agent', agent, AGENTS);
  if (options.driver !== undefined) checkDriver(options.driver, options);
}

/** For QEMU alone: a driver's own witness would ignore these. */
const QEMUS = ['qmp', 'eventLog', 'log'] as const;

function checkDriver(driver: VmDriver, options: VmOptions): void {
  const given = (driver as unknown) ?? {};
  const { state, powerDown, forceOff, witness } = given as Record<string, unknown>;
  const isOne = [state, powerDown, forceOff].every((each) => typeof each === 'function');
  if (!isOne) throw invalidOption('driver must have state(), powerDown() and forceOff()');
  if (witness === undefined) return;
  if (typeof witness !== 'function') throw invalidOption('witness of a driver must be a function');
  const other = QEMUS.find((key) => options[key] !== undefined);
  if (other !== undefined)
    throw invalidOption(`${other} is for QEMU only, but the driver has its own witness`);
}
