import { type FileHandle, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { ExitwatchError } from '../../common/errors.js';
import { distrustOf } from '../../common/file-trust.js';
import { replaceFile, syncFolder } from '../../common/small-file.js';
import { lockFile } from '../../native/lock-file.js';

import type { ShutdownMarker } from './shutdown-marker.js';
import { stateError, statePath } from './state-file.js';
import { type VmRecord, readVmRecords } from './vm-record.js';

/** What {@link replaceFile} leaves if it is killed. */
const TEMPORARY = /^\..*\.[0-9a-f]{12}$/;

/** A user who can write to it can forge our records. */
async function checkTrust(path: string): Promise<void> {
  const distrust = distrustOf(await stat(path));
  if (distrust !== null) throw new Error(`it ${distrust}`);
}

/**
 * Like mkdir -p. That of node:fs never returns if a file system refuses with ENOENT, as /proc does.
 */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}

/** A daemon's state directory, locked against other daemons. */
export class StateDirectory {
  readonly path: string;
  /** When the first daemon locked it. */
  readonly since: Date;
  readonly #lock: FileHandle;

  private constructor(path: string, lock: FileHandle, since: Date) {
    this.path = path;
    this.#lock = lock;
    this.since = since;
  }

  /**
   * Creates the directory if it is missing, and locks it.
   *
   * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR`.
   */
  static async open(path: string): Promise<StateDirectory> {
    let lock;
    try {
      await makeFolder(path);
      await checkTrust(path);
      lock = await open(join(path, '.lock'), 'a', 0o600);
      if (!lockFile(lock.fd)) {
        const detail = `another daemon uses ${JSON.stringify(path)}`;
        throw new ExitwatchError('ERR_EXITWATCH_IN_USE', detail);
      }
      for (const entry of await readdir(path)) {
        if (TEMPORARY.test(entry)) await unlink(join(path, entry));
      }
      // Nothing is ever written to the lock file, so its mtime is when it was created.
      return new StateDirectory(path, lock, (await lock.stat()).mtime);
    } catch (error) {
      await lock?.close();
      throw error instanceof ExitwatchError ? error : stateError(path, error);
    }
  }

  /** Resolves with the time when it was called for the first time: since then, the intent log was there. */
  async markIntents(): Promise<Date> {
    const mark = await open(join(this.path, '.intents'), 'a', 0o600);
    try {
      return (await mark.stat()).mtime; // as with the lock file
    } finally {
      await mark.close();
    }
  }

  /** The records of this host. */
  records(onError: (error: Error, name: string) => void): Promise<VmRecord[]> {
    return readVmRecords(this.path, onError);
  }

  /** Durable when it resolves. */
  async write(record: VmRecord): Promise<void> {
    await this.#replace(statePath(this.path, record.name, 'record'), record);
  }

  async mark(marker: ShutdownMarker): Promise<void> {
    await this.#replace(statePath(this.path, marker.name, 'marker'), marker);
  }

  async unmark(name: string): Promise<void> {
    try {
      await unlink(statePath(this.path, name, 'marker'));
      await syncFolder(this.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw stateError(this.path, error);
    }
  }

  async close(): Promise<void> {
    await this.#lock.close();
  }

  async #replace(path: string, content: object): Promise<void> {
    try {
      await replaceFile(path, `${JSON.stringify(content)}\n`);
    } catch (error) {
      throw stateError(path, error);
    }
  }
}
