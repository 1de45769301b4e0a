import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';

import { ExitwatchError, reasonOf } from '../common/errors.js';
import { distrustOf } from '../common/file-trust.js';
import { lockFile } from '../native/lock-file.js';

const {
  O_APPEND,
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
  O_RDWR,
  O_WRONLY,
} = constants;

/** A file that {@link StateFolder.replace} left behind when it was killed. */
const TEMPORARY = /^\..*\.[0-9a-f]{12}$/;

/**
 * A folder that one monitor owns, and in which it remembers what it watches. All calls are synchronous,
 * because `watch()` is.
 */
export class StateFolder {
  readonly path: string;
  readonly #lock: number;
  #isClosed = false;

  /**
   * Creates the folder if it is missing, and locks it.
   *
   * @param other what else may have locked it, for the message
   * @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR`
   */
  constructor(path: string, other = 'another monitor') {
    this.path = path;
    let lock: number | undefined;
    try {
      makeFolder(path);
      const distrust = distrustOf(statSync(path));
      if (distrust !== null) throw new Error(`it ${distrust}`);
      lock = openFile(join(path, '.lock'), O_RDWR | O_APPEND | O_CREAT);
      if (!lockFile(lock)) {
        throw new ExitwatchError('ERR_EXITWATCH_IN_USE', `${other} owns ${JSON.stringify(path)}`);
      }
      for (const entry of readdirSync(path)) {
        if (TEMPORARY.test(entry)) unlinkSync(join(path, entry));
      }
      this.#lock = lock;
    } catch (error) {
      if (lock !== undefined) closeSync(lock);
      throw this.error(error);
    }
  }

  /** Replaces a file atomically; it is on disk when this returns. */
  replace(name: string, content: string): void {
    const path = join(this.path, name);
    const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
    try {
      const file = openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        writeAll(file, content);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(temporary, path);
      this.sync();
    } catch (error) {
      rmSync(temporary, { force: true });
      throw this.error(error);
    }
  }

  /**
   * Appends to a file: all of it, or nothing, unless the file system cannot even take it back.
   *
   * @param isSynced it is on disk when this returns; otherwise only our own death does not lose it
   * @returns `false`: there is no such file
   */
  append(name: string, content: string, isSynced = true): boolean {
    let file;
    try {
      file = openFile(join(this.path, name), O_WRONLY | O_APPEND);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw this.error(error);
    }
    const { size } = fstatSync(file);
    try {
      writeAll(file, content);
      if (isSynced) fdatasyncSync(file);
    } catch (error) {
      takeBack(file, size);
      throw this.error(error);
    } finally {
      closeSync(file);
    }
    return true;
  }

  /** A file of this folder; `null` if it does not exist. */
  read(name: string): string | null {
    let file;
    try {
      file = openFile(join(this.path, name), O_RDONLY);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw this.error(error);
    }
    try {
      return readFileSync(file, 'utf8');
    } finally {
      closeSync(file);
    }
  }

  /** Makes files that were created or renamed durable. */
  sync(): void {
    const folder = openSync(this.path, O_RDONLY | O_DIRECTORY);
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }

  /** What to throw instead of an error of the file system. */
  error(error: unknown): ExitwatchError {
    if (error instanceof ExitwatchError) return error;
    const detail = `${JSON.stringify(this.path)} cannot be used: ${reasonOf(error)}`;
    return new ExitwatchError('ERR_EXITWATCH_STATE_DIR', detail, { cause: error });
  }

  /** Also more than once: its number may be another file's by then. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#lock);
  }
}

/**
 * Opens a regular file that only its owner, who is this user or root, can write; does not wait if it is
 * something else.
 */
export function openFile(path: string, flags: number): number {
  const file = openSync(path, flags | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    const status = fstatSync(file);
    if (!status.isFile()) throw new Error(`its file ${basename(path)} is not a regular file`);
    const distrust = distrustOf(status);
    if (distrust !== null) throw new Error(`its file ${basename(path)} ${distrust}`);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function takeBack(file: number, size: number): void {
  try {
    ftruncateSync(file, size);
  } catch {
    // Who reads it leaves out what is torn.
  }
}

/** Writes all of it, or throws. */
export function writeAll(file: number, content: string | Buffer): void {
  const bytes = Buffer.from(content);
  for (let written = 0; written < bytes.length;) {
    written += writeSync(file, bytes, written);
  }
}

/** Like mkdir -p. Node's own loops forever where a file system refuses with ENOENT, as /proc does. */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    makeFolder(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
}
