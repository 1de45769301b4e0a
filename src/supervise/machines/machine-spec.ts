import { join } from 'node:path';

import { isObject } from '../../common/is-object.js';
import {
  LONGEST_MS,
  checkInteger,
  checkMilliseconds,
  checkOneOf,
  invalidOption,
} from '../../common/options.js';
import type { ConfiguredMachine, ServiceSpec } from '../../supervisor/index.js';
import { eventLogArguments } from '../../vm/index.js';

/** The longest address of a unix socket: sun_path in unix(7). */
const MOST_SOCKET_BYTES = 107;
const DEFAULT_POWERDOWN_MS = 60_000;
const DEFAULT_GRACE_MS = 5000;
/** For the command to notice that the machine does not obey. */
const MORE_MS = 5000;

const NOT_FOR_MACHINES: readonly (readonly [keyof ServiceSpec, string])[] = [
  ['askedBy', ': what its guest and its hypervisor say decides'],
  ['successExitCodes', ': what its guest and its hypervisor say decides'],
  ['watchdog', ': QEMU does not serve one'],
  ['pidfile', ': it has one among its own files'],
  ['user', ': its sockets are made for us; use its option -run-with user=, or -runas'],
  ['group', ': its sockets are made for us; use its option -run-with user=, or -runas'],
];

/** The folders of the machines: for their sockets and logs, and for what is remembered of their ends. */
export interface MachineFolders {
  control: string;
  state: string;
}

export function machineFolders(folder: string): MachineFolders {
  return { control: join(folder, 'machines'), state: join(folder, 'machine-ends') };
}

/** Whether a service is a machine of ours: its files say so, also if its configuration is not known. */
export function isMachine({ name, pidfile }: ServiceSpec, { control }: MachineFolders): boolean {
  return pidfile === join(control, `${name}.pid`);
}

/**
 * A machine as a service: with a socket and an event log for us, and a socket for commands.
 *
 * @param given with valid options, other than those that only a machine has
 * @param exitwatch our own command
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`
 */
export function machineSpec(
  given: ConfiguredMachine,
  folders: MachineFolders,
  exitwatch: readonly string[],
): ServiceSpec {
  checkMachine(given, folders);
  const { kind, stop = {}, restart = 'unless-asked', ...machine } = given;
  checkOneOf('kind', kind, ['vm']);
  const { name, args = [], onUnknown = 'stay' } = machine;
  const { powerdownMs, graceMs } = checkStop(stop);
  const file = (ending: string) => join(folders.control, `${name}.${ending}`);
  const [command = '', ...words] = exitwatch;
  return {
    ...machine,
    ...{ restart, onUnknown, pidfile: file('pid') },
    args: [
      ...args,
      ...['-qmp', socketArgument(file('qmp')), '-qmp', socketArgument(file('control'))],
      ...eventLogArguments(file('events')),
    ],
    stop: {
      graceMs,
      control: {
        command,
        args: [
          ...[...words, 'vm', 'powerdown', name, '--timeout', `${powerdownMs}ms`],
          ...['--control-dir', folders.control, '--state-dir', folders.state],
        ],
        timeoutMs: powerdownMs + MORE_MS,
      },
    },
  };
}

function checkStop(stop: object): { powerdownMs: number; graceMs: number } {
  const unknown = Object.keys(stop).find((key) => key !== 'powerdownMs' && key !== 'graceMs');
  if (unknown !== undefined)
    throw invalidOption(`unknown option ${JSON.stringify(`stop.${unknown}`)}`);
  const { powerdownMs = DEFAULT_POWERDOWN_MS, graceMs = DEFAULT_GRACE_MS } = stop as Record<
    string,
    unknown
  >;
  return {
    powerdownMs: checkInteger('stop.powerdownMs', powerdownMs, 1, LONGEST_MS - MORE_MS),
    graceMs: checkMilliseconds('stop.graceMs', graceMs),
  };
}

function socketArgument(path: string): string {
  return `unix:${path.replaceAll(',', ',,')},server=on,wait=off`;
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` for options that only other services have */
export function checkMachineOptions(given: object): void {
  for (const [option, reason] of NOT_FOR_MACHINES) {
    if (option in given) throw invalidOption(`${option} is not for a machine${reason}`);
  }
}

function checkMachine(given: ConfiguredMachine, { control }: MachineFolders): void {
  const { name, args = [], restart, stop, ready } = given;
  if (args.some((arg) => /^--?daemonize$/.test(arg))) {
    throw invalidOption('args must not have -daemonize: its parent could not tell how it ended');
  }
  if (ready !== undefined && 'notify' in ready) {
    throw invalidOption('ready.notify is not for a machine: QEMU does not send READY=1');
  }
  if (restart !== undefined) checkOneOf('restart', restart, ['unless-asked', 'never']);
  if (stop !== undefined && !isObject(stop)) throw invalidOption('stop must be an object');
  const socket = join(control, `${name}.control`);
  if (Buffer.byteLength(socket) <= MOST_SOCKET_BYTES) return;
  throw invalidOption(`name is too long: the socket ${socket} may have ${MOST_SOCKET_BYTES} bytes`);
}
