import { readdir } from 'node:fs/promises';

import { checkIdentity, type ProcessIdentity } from '../../identity/process-identity.js';
import { isVmName } from '../directory/control-files.js';
import type { QemuCommand } from '../qemu/qemu-command.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import { checkVmName, readStateFile, stateError, statePath, STATE_SUFFIXES } from './state-file.js';

/** One end of a virtual machine. */
export type VmEnd = {
  /** Names it and no other: the identity's id, where that is known. */
  id: string;
  /** Which process it was; `null`: it had ended when it was found. */
  identity: ProcessIdentity | null;
  stop: VmVerdict;
  /** Ends by one and the same hand, some seconds apart, share the id of the first: a host's shutdown. */
  group: string | null;
  /** The daemon was ended before it knew that this was delivered. */
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
  /** Ends that may not have been delivered to the hook. */
  undelivered: VmEnd[];
  /** The host that this is about; `null` where that has no name (machine-id(5)). */
  host: string | null;
};

const MOST_RECORD_BYTES = 4 * 1024 * 1024;

/**
 * What a daemon's state directory has of a virtual machine; `null`: nothing, or of another host.
 *
 * Rejects with an `ExitwatchError` `ERR_EXITWATCH_STATE_DIR`, `ERR_EXITWATCH_INVALID_OPTION`.
 */
export async function readVmRecord(stateDir: string, name: string): Promise<VmRecord | null> {
  checkVmName(name);
  const path = statePath(stateDir, name, 'record');
  return readStateFile(path, MOST_RECORD_BYTES, (value) => asRecord(value, name));
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
  if (!isOne) throw new Error('it is no record of that virtual machine');
  for (const identity of [record.identity, record.lastStopped]) {
    if (identity != null) checkIdentity(identity);
  }
  return record as VmRecord;
}
