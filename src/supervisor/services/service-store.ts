import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { ExitwatchError } from '../../common/errors.js';
import { isObject } from '../../common/is-object.js';
import { LineFiles } from '../../memory/line-files.js';
import { StateFolder } from '../../memory/state-folder.js';

import { RECORD_VERSION, type ServiceRecord, type StoredSpec } from './service-record.js';

/** No service has this name. */
const PENDING = '+apply.json';

/** A desired set that was accepted, but has not reached every service. */
export interface PendingApply {
  version: typeof RECORD_VERSION;
  services: StoredSpec[];
}

/** How many lines a file may have: the record, and what has changed of it since. */
const MOST_LINES = 128;

/** A record as it is on disk. */
interface Written {
  stored: StoredSpec;
  next: StoredSpec | null;
  /** All the rest of it, as a line. */
  changing: string;
}

/** One file for each service, which is written only when it changes. */
export class ServiceStore {
  readonly #folder: StateFolder;
  readonly #files: LineFiles;
  /** `null`: nobody knows, because it could not be written. */
  readonly #written = new Map<string, Written | null>();
  #pending: string | null = null;
  #isClosed = false;
  writes = 0;

  /** @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` */
  constructor(stateDir: string) {
    this.#folder = new StateFolder(join(stateDir, 'services'));
    this.#files = new LineFiles(this.#folder, MOST_LINES);
  }

  /**
   * All records. Changes nothing, also if one of them cannot be read.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`
   */
  load(): { records: ServiceRecord[]; pending: PendingApply | null } {
    const records: ServiceRecord[] = [];
    let pending: PendingApply | null = null;
    for (const file of readdirSync(this.#folder.path).sort()) {
      if (!file.endsWith('.json') || file.startsWith('.')) continue;
      const [first, ...changes] = this.#files.read(file) ?? [];
      if (first === undefined) continue;
      const last = changes.findLast(isJson); // one that was not synced may be garbage after a power failure
      const value = this.#parse(file, first);
      if (last !== undefined) Object.assign(value, this.#parse(file, last));
      if (file === PENDING) {
        this.#pending = first;
        pending = value as unknown as PendingApply;
        continue;
      }
      const record = value as unknown as ServiceRecord;
      this.#written.set(file, writtenOf(record));
      records.push(record);
    }
    return { records, pending };
  }

  /** @param isSynced otherwise a power failure may take it along, but not our death */
  save(record: ServiceRecord, isSynced = true): void {
    this.#checkOpen();
    const file = fileOf(record);
    const before = this.#written.get(file);
    const { stored, next, changing } = writtenOf(record);
    // What is described otherwise is replaced, so that what it was does not stay on the disk.
    const isSame = before?.stored === stored && before.next === next;
    if (isSame && before.changing === changing) return;
    const all = () => [JSON.stringify(record)];
    this.#written.set(file, null);
    if (isSame) this.#files.append(file, changing, all, isSynced);
    else this.#files.replace(file, all());
    this.#written.set(file, { stored, next, changing });
    this.writes++;
  }

  remove(record: ServiceRecord): void {
    this.#checkOpen();
    const file = fileOf(record);
    if (!this.#written.delete(file)) return;
    this.#files.remove(file);
    this.writes++;
  }

  savePending(pending: PendingApply): void {
    this.#checkOpen();
    const text = JSON.stringify(pending);
    if (this.#pending === text) return;
    this.#pending = ''; // if that fails, nobody knows what is there
    this.#files.replace(PENDING, [text]);
    this.#pending = text;
    this.writes++;
  }

  get hasPending(): boolean {
    return this.#pending !== null;
  }

  removePending(): void {
    this.#checkOpen();
    if (this.#pending === null) return;
    this.#pending = null;
    this.#files.remove(PENDING);
    this.writes++;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#folder.close();
  }

  #checkOpen(): void {
    if (this.#isClosed)
      throw new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the supervisor was closed');
  }

  #parse(file: string, text: string): Record<string, unknown> {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw this.#folder.error(new Error(`its file ${file} is torn`, { cause: error }));
    }
    if (isObject(value) && value['version'] === RECORD_VERSION) {
      if (file === PENDING || value['name'] === file.slice(0, -'.json'.length)) return value;
      throw this.#folder.error(new Error(`its file ${file} describes another service`));
    }
    const version = isObject(value) ? String(value['version']) : 'unknown';
    const detail = `its file ${file} has version ${version}, and this release knows ${RECORD_VERSION}`;
    throw this.#folder.error(new Error(detail));
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const fileOf = ({ name }: ServiceRecord) => `${name}.json`;

function writtenOf({ stored, next, ...rest }: ServiceRecord): Written {
  return { stored, next, changing: JSON.stringify(rest) };
}
