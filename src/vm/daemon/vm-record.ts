import { readdir } from 'node:fs/promises';

import { checkIdentity, type ProcessIdentity } from '../../identity/process-identity.js';
import { isVmName } from '../directory/control-files.js';
import type { QemuCommand } from '../qemu/qemu-command.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { checkVmName, readStateFile, stateError, statePath, STATE_SUFFIXES } from './state-file.js';

/**
 * How one start of a virtual machine ended.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export type VmEnd = {
  /** Names this end and no other: the id of the identity, if that is known. */
  id: string;
  /** Its process; `null`: it had exited when it was found. */
  identity: ProcessIdentity | null;
  stop: VmVerdict;
  /**
   * Ends that one process caused within seconds share the id of the first, as when the host shuts
   * down. `null`: nobody else ended it, or it is unknown who did.
   */
  group: string | null;
  /** Delivered before, perhaps: the daemon ended before it knew. */
  isRepeated: boolean;
  /**
   * The machine was started again later, and may be running, have ended, or have been stopped since:
   * this end says nothing about what to do now. `null`: unknown, because its files cannot be read.
   */
  isSuperseded: boolean | null;
};

/**
 * An end as a record holds it.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export type StoredVmEnd = Omit<VmEnd, 'isSuperseded'>;

/**
 * What `exitwatch vm daemon` knows about a virtual machine: `NAME.json` in its state directory.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export type VmRecord = {
  event: 'vm';
  name: string;
  /**
   * State of its last start when the daemon last looked; `identity` tells whether it still runs.
   */
  state: 'running' | 'stopped';
  /** The process of its last start; `null`: it had exited when it was found. */
  identity: ProcessIdentity | null;
  /** The user that it ran as; `null` if unknown. */
  uid: number | null;
  /** When its last start was found. */
  foundAt: Date;
  /** Which file its event log was when first seen (device, inode, birth time); `null`: none yet. */
  eventLog: string | null;
  /** What its command line said about how it ends; `null` or missing: unknown. */
  command?: QemuCommand | null;
  /** Why it ended the last time; `null`: it has not ended yet. */
  lastStop: VmVerdict | null;
  /** The process that ended then. */
  lastStopped: ProcessIdentity | null;
  /** Up to when its event log is accounted for. */
  judgedUntil: Date | null;
  /** Ends that the hook may not have received. */
  undelivered: StoredVmEnd[];
  /** A hash that names the host; `null`: the host has no machine-id(5). */
  host: string | null;
};

const MOST_RECORD_BYTES = 4 * 1024 * 1024;

/**
 * What a state directory holds about a virtual machine; `null`: nothing, or of another host.
 *
 * Rejects with an `ExitwatchError` `ERR_EXITWATCH_STATE_DIR`, `ERR_EXITWATCH_INVALID_OPTION`.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
export async function readVmRecord(stateDir: string, name: string): Promise<VmRecord | null> {
  checkVmName(name);
  const path = statePath(stateDir, name, 'record');
  return readStateFile(path, MOST_RECORD_BYTES, (value) => asRecord(value, name));
}

/**
 * The same for all. Passes errors of single records to `onError`, and leaves these out.
 *
 * Rejects with an `ExitwatchError` `ERR_EXITWATCH_STATE_DIR` if the directory cannot be read.
 *
 * @see [In a program](../../../docs/vm-daemon.md#in-a-program)
 */
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
    .filter((entry) => entry.endsWith(STATE_SUFFIXES.record))
    .map((entry) => entry.slice(0, -STATE_SUFFIXES.record.length))
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

function asRecord(value: unknown, name: string): VmRecord {
  const record = value as Partial<VmRecord> | null;
  const isOne =
    record?.event === 'vm' &&
    record.name === name &&
    (record.state === 'running' || record.state === 'stopped') &&
    record.foundAt instanceof Date &&
    Array.isArray(record.undelivered);
  if (!isOne) throw new Error('it is not a record of this machine');
  for (const identity of [record.identity, record.lastStopped]) {
    if (identity != null) checkIdentity(identity);
  }
  return record as VmRecord;
}
