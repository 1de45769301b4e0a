import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { ExitwatchError, reasonOf } from '../../errors.js';
import { isWritableByOthers, readSmallFile } from '../../process/small-file.js';
import {
  checkIdentity,
  isSameProcess,
  startOf,
  type ProcessIdentity,
} from '../../process-identity.js';

import { isVmName } from '../directory/control-files.js';
import type { QemuCommand } from '../qemu/qemu-command.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

/** One end of a virtual machine. */
export type VmEnd = {
  /** Names it and no other: the identity's id, where that is known. */
  id: string;
  /** Which process it was; `null`: it had ended when it was found. */
  identity: ProcessIdentity | null;
  stop: VmVerdict;
  /** Ends by one and the same hand, some seconds apart, share the id of the first: a host's shutdown. */
  group: string | null;
  /** The daemon was ended before it knew that this was told. */
  isRepeated: boolean;
};

/** What `exitwatch vm daemon` knows of a virtual machine: `NAME.json` in its state directory. */
export type VmRecord = {
  event: 'vm';
  name: string;
  /** Of its last start. `'running'`: as far as the daemon has seen; whether it is still, the identity tells. */
  state: 'running' | 'stopped';
  /** Which process its last start was; `null`: it had ended when it was found. */
  identity: ProcessIdentity | null;
  /** As whom that ran; `null`: not known. */
  uid: number | null;
  /** When its last start was found. */
  foundAt: Date;
  /** Which file its event log was when it was seen first; `null`: it had none so far. */
  eventLog: string | null;
  /** What its command line said of how it ends; `null`, or missing: not known. */
  command?: QemuCommand | null;
  /** Why it ended the last time; `null`: it has not yet. */
  lastStop: VmVerdict | null;
  /** Which process that was. */
  lastStopped: ProcessIdentity | null;
  /** Of its event log, what came up to then is accounted for. */
  judgedUntil: Date | null;
  /** Ends that the hook may not have been told of. */
  untold: VmEnd[];
  /** The host that this is about; `null` where that has no name (machine-id(5)). */
  host: string | null;
};

/** The mark of a user's shutdown: `NAME.shutdown` in a state directory. */
export type ShutdownMarker = {
  event: 'shutdown';
  name: string;
  /** Which process the user has shut down; `null`: it had ended when it was found. */
  identity: ProcessIdentity | null;
  /** When this start of the machine began, by its process or its first word; `null`: not known. */
  startedAt?: Date | null;
  /** What began up to then was an earlier start; `null`: none is known of. */
  startedAfter?: Date | null;
  at: Date;
  cause: VmVerdict['cause'];
  host: string | null;
};

const MOST_RECORD_BYTES = 4 * 1024 * 1024;
const MOST_MARKER_BYTES = 64 * 1024;

const RECORD = '.json';
const MARKER = '.shutdown';

export const recordPath = (stateDir: string, name: string) => join(stateDir, `${name}${RECORD}`);
export const markerPath = (stateDir: string, name: string) => join(stateDir, `${name}${MARKER}`);
/** Where whoever stops a machine writes that down before. */
export const intentLogPath = (stateDir: string) => join(stateDir, 'intents');

/**
 * What a daemon's state directory has of a virtual machine; `null`: nothing, or of another host.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_STATE_DIR`, `ERR_EXITWATCH_INVALID_OPTION`.
 */
export async function readVmRecord(stateDir: string, name: string): Promise<VmRecord | null> {
  checkName(name);
  const path = recordPath(stateDir, name);
  return forThisHost(await readState(path, MOST_RECORD_BYTES, (value) => asRecord(value, name)));
}

/** The same of all. What cannot be read is handed to `onError`, and left out. */
export async function readVmRecords(
  stateDir: string,
  onError: (error: Error, name: string) => void,
): Promise<VmRecord[]> {
  let entries;
  try {
    entries = await readdir(stateDir);
  } catch (error) {
    throw stateError(stateDir, error);
  }
  const names = entries
    .filter((entry) => entry.endsWith(RECORD))
    .map((entry) => entry.slice(0, -RECORD.length))
    .filter(isVmName);
  const records: VmRecord[] = [];
  for (const name of names.sort()) {
    try {
      const record = await readVmRecord(stateDir, name);
      if (record !== null) records.push(record);
    } catch (error) {
      onError(error as Error, name);
    }
  }
  return records;
}

/**
 * The mark of a user's shutdown, if the last end of that virtual machine was one; with a process, or with
 * when its process was started, only if it was this start's: a mark that an earlier start has left says
 * nothing of a later one. Of a start that nobody has seen, the event log tells when it began.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_STATE_DIR`, `ERR_EXITWATCH_INVALID_OPTION`.
 */
export async function readShutdownMarker(
  stateDir: string,
  name: string,
  run?: ProcessIdentity | { startedAt: Date },
): Promise<ShutdownMarker | null> {
  checkName(name);
  if (run !== undefined) checkRun(run);
  const path = markerPath(stateDir, name);
  const read = await readState(path, MOST_MARKER_BYTES, (value) => asMarker(value, name));
  const marker = forThisHost(read);
  if (marker === null || run === undefined) return marker;
  if (!('startedAt' in run) && marker.identity !== null) {
    return isSameProcess(marker.identity, run) ? marker : null;
  }
  const startedAt = 'startedAt' in run ? run.startedAt : startOf(run);
  return startedAt !== null && isOfStart(marker, startedAt) ? marker : null;
}

/** How long after its process a machine has its first word. */
const FIRST_WORD_MS = 10_000;

/** Clocks of two processes. */
const CLOCK_SLACK_MS = 1000;

function isOfStart(marker: ShutdownMarker, at: Date): boolean {
  const { startedAt = null, startedAfter = null } = marker;
  if (startedAt === null || at.getTime() <= (startedAfter?.getTime() ?? -Infinity)) return false;
  const afterMs = startedAt.getTime() - at.getTime();
  return afterMs >= -CLOCK_SLACK_MS && afterMs <= FIRST_WORD_MS;
}

function checkRun(run: ProcessIdentity | { startedAt: Date }): void {
  if (!('startedAt' in run)) checkIdentity(run);
  else if (!((run.startedAt as unknown) instanceof Date)) {
    throw new ExitwatchError('ERR_EXITWATCH_INVALID_OPTION', 'startedAt is a Date');
  }
}

let ownHost: string | null | undefined;

/** Names this host, to itself: machine-id(5) is not to be told to others. */
export function hostId(): string | null {
  ownHost ??= readHostId();
  return ownHost;
}

function readHostId(): string | null {
  for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
    try {
      const id = readFileSync(path, 'latin1').trim();
      if (/^[0-9a-f]{32}$/.test(id)) {
        return createHmac('sha256', id).update('exitwatch').digest('hex').slice(0, 32);
      }
    } catch {
      // there is none
    }
  }
  return null;
}

/** What a state directory of another host says, which was copied here, is not about this one. */
function forThisHost<T extends { host: string | null }>(value: T | null): T | null {
  if (value?.host == null || hostId() === null) return value;
  return value.host === hostId() ? value : null;
}

async function readState<T>(
  path: string,
  most: number,
  parse: (value: unknown) => T,
): Promise<T | null> {
  try {
    const file = await readSmallFile(path, most);
    if (isWritableByOthers(file)) throw new Error('others than its owner can write it');
    const owners = [0, process.geteuid?.(), (await stat(dirname(path))).uid];
    if (!owners.includes(file.owner)) throw new Error(`it is user ${file.owner}'s`);
    if (file.isCut) throw new Error('it is too long');
    return parse(JSON.parse(file.bytes.toString('utf8'), reviveDates));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw stateError(path, error);
  }
}

const DATES: readonly string[] = [
  ...['at', 'sentAt', 'exitedAt', 'startedAt', 'startedAfter', 'foundAt', 'judgedUntil'],
];

function reviveDates(key: string, value: unknown): unknown {
  return DATES.includes(key) && typeof value === 'string' ? new Date(value) : value;
}

function asRecord(value: unknown, name: string): VmRecord {
  const record = value as Partial<VmRecord> | null;
  const isOne =
    record?.event === 'vm' &&
    record.name === name &&
    (record.state === 'running' || record.state === 'stopped') &&
    record.foundAt instanceof Date &&
    Array.isArray(record.untold);
  if (!isOne) throw new Error('it is no record of that virtual machine');
  for (const identity of [record.identity, record.lastStopped]) {
    if (identity != null) checkIdentity(identity);
  }
  return record as VmRecord;
}

function asMarker(value: unknown, name: string): ShutdownMarker {
  const marker = value as Partial<ShutdownMarker> | null;
  if (marker?.event !== 'shutdown' || marker.name !== name) throw new Error('it is no such mark');
  if (marker.identity != null) checkIdentity(marker.identity);
  return marker as ShutdownMarker;
}

function checkName(name: unknown): void {
  if (typeof name === 'string' && isVmName(name)) return;
  throw new ExitwatchError(
    'ERR_EXITWATCH_INVALID_OPTION',
    `${JSON.stringify(name)} is no name of a virtual machine`,
  );
}

/** @internal */
export function stateError(path: string, error: unknown): ExitwatchError {
  if (error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_STATE_DIR') return error;
  const detail = `${JSON.stringify(path)} cannot be used: ${reasonOf(error)}`;
  return new ExitwatchError('ERR_EXITWATCH_STATE_DIR', detail, { cause: error });
}
