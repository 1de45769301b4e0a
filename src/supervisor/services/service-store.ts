import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { ExitwatchError } from '../../common/errors.js';
import { isObject } from '../../common/is-object.js';
import { StateFolder } from '../../memory/state-folder.js';

import { RECORD_VERSION, type ServiceRecord, type StoredSpec } from './service-record.js';

/** No service has this name. */
const PENDING = '+apply.json';

/** A desired set that was accepted, but has not reached every service. */
export interface PendingApply {
  version: typeof RECORD_VERSION;
  services: StoredSpec[];
}

/** One file for each service, which is on disk when a call returns, and written only when it changes. */
export class ServiceStore {
  readonly #folder: StateFolder;
  readonly #written = new Map<string, string>();
  #isClosed = false;
  writes = 0;

  /** @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` */
  constructor(stateDir: string) {
    this.#folder = new StateFolder(join(stateDir, 'services'));
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
      const text = this.#folder.read(file);
      if (text === null) continue;
      const value = this.#parse(file, text);
      this.#written.set(file, text);
      if (file === PENDING) pending = value as unknown as PendingApply;
      else records.push(value as unknown as ServiceRecord);
    }
    return { records, pending };
  }

  save(record: ServiceRecord): void {
    this.#replace(`${record.name}.json`, record);
  }

  remove(record: ServiceRecord): void {
    this.#remove(`${record.name}.json`);
  }

  savePending(pending: PendingApply): void {
    this.#replace(PENDING, pending);
  }

  get hasPending(): boolean {
    return this.#written.has(PENDING);
  }

  removePending(): void {
    this.#remove(PENDING);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#folder.close();
  }

  #replace(file: string, value: object): void {
    if (this.#isClosed)
      throw new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the supervisor was closed');
    const text = `${JSON.stringify(value)}\n`;
    if (this.#written.get(file) === text) return;
    this.#written.set(file, ''); // if that fails, nobody knows what is there
    this.#folder.replace(file, text);
    this.#written.set(file, text);
    this.writes++;
  }

  #remove(file: string): void {
    if (this.#isClosed)
      throw new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the supervisor was closed');
    if (!this.#written.delete(file)) return;
    try {
      rmSync(join(this.#folder.path, file), { force: true });
      this.#folder.sync();
    } catch (error) {
      throw this.#folder.error(error);
    }
    this.writes++;
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
