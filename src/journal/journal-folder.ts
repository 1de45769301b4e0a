import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  readdirSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';

import type { ExitwatchError } from '../common/errors.js';
import { openFile, StateFolder } from '../memory/state-folder.js';

const { O_CREAT, O_RDONLY } = constants;

/** Segments and their indexes. */
const OWN = /^\d{16}\./;

/** The directory of a journal, owned by one writer. */
export class JournalFolder {
  readonly path: string;
  readonly #folder: StateFolder;
  readonly #gid: number | undefined;

  /**
   * Creates the directory if it is missing, and locks it.
   *
   * @param gid a group that may read the journal
   * @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR`
   */
  constructor(path: string, gid: number | undefined) {
    this.path = path;
    this.#gid = gid;
    this.#folder = new StateFolder(path, 'another writer');
    try {
      if (gid === undefined) return;
      chownSync(path, -1, gid);
      chmodSync(path, 0o750);
      // What was written before the group was named.
      for (const name of this.entries)
        if (OWN.test(name)) closeSync(this.open(name, O_RDONLY, gid));
    } catch (error) {
      this.#folder.close();
      throw this.error(error);
    }
  }

  get entries(): string[] {
    return readdirSync(this.path);
  }

  /**
   * Opens a file of the journal, or makes it.
   *
   * @param gid the group that may read it from now on
   */
  open(name: string, flags: number, gid = (flags & O_CREAT) === 0 ? undefined : this.#gid): number {
    const file = openFile(join(this.path, name), flags);
    if (gid !== undefined) {
      fchownSync(file, -1, gid);
      fchmodSync(file, 0o640);
    }
    return file;
  }

  /** Replaces a file atomically; it is on disk when this returns. */
  replace(name: string, content: string): void {
    this.#folder.replace(name, content);
    if (this.#gid === undefined) return;
    chownSync(join(this.path, name), -1, this.#gid);
    chmodSync(join(this.path, name), 0o640);
  }

  /** A file of this folder; `null` if it does not exist. */
  read(name: string): string | null {
    return this.#folder.read(name);
  }

  remove(name: string): void {
    try {
      unlinkSync(join(this.path, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  /** Makes files that were created, renamed or removed durable. */
  sync(): void {
    this.#folder.sync();
  }

  /** What to throw instead of an error of the file system. */
  error(error: unknown): ExitwatchError {
    return this.#folder.error(error);
  }

  close(): void {
    this.#folder.close();
  }
}
