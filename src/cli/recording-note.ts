import { closeSync, constants, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';

import { ExitwatchError, reasonOf } from '../common/errors.js';
import { isObject } from '../common/is-object.js';
import { bootId } from '../identity/boot-id.js';
import { openFile } from '../memory/state-folder.js';

const { O_CREAT, O_RDWR } = constants;

const FILE = 'recording';
const BYTES = 128;

/** A moment, and the boot of then. */
export interface Recorded {
  at: Date;
  bootId: string | null;
}

/**
 * Until when ends were recorded, in a file of the journal's directory. The last row does not say that: it is old if
 * nothing has ended that `--match` keeps. A note that a power failure takes along does no harm: then an
 * earlier one counts, or the last row.
 */
export class RecordingNote {
  readonly #file: number;
  #isClosed = false;

  /**
   * `dir` belongs to us.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`
   */
  constructor(dir: string) {
    try {
      this.#file = openFile(join(dir, FILE), O_RDWR | O_CREAT);
    } catch (error) {
      const detail = `${JSON.stringify(dir)} cannot be used: ${reasonOf(error)}`;
      throw new ExitwatchError('ERR_EXITWATCH_STATE_DIR', detail, { cause: error });
    }
  }

  /** What an earlier recording has noted; `null`: nothing. */
  read(): Recorded | null {
    const bytes = Buffer.alloc(BYTES);
    const text = bytes.toString('utf8', 0, readSync(this.#file, bytes, 0, BYTES, 0));
    try {
      const note: unknown = JSON.parse(text);
      if (!isObject(note) || typeof note['bootId'] !== 'string') return null;
      const at = new Date(String(note['at']));
      return Number.isNaN(at.getTime()) ? null : { at, bootId: note['bootId'] };
    } catch {
      return null; // empty, or torn
    }
  }

  /** All ends until then are on disk, or somebody else remembers them. */
  set(at: Date): void {
    if (this.#isClosed) return;
    const text = JSON.stringify({ at, bootId: bootId() });
    try {
      writeSync(this.#file, `${text.padEnd(BYTES - 1)}\n`, 0);
    } catch {
      // The disk is full, and the file system has no room for a change either. The next one tries again.
    }
  }

  close(): void {
    this.#isClosed = true;
    closeSync(this.#file);
  }
}

/** The later one; `null`: there is none. Times of another boot may be of another clock. */
export function later(one: Recorded | null, other: Recorded | null): Recorded | null {
  if (one === null || other === null) return one ?? other;
  if (one.bootId !== other.bootId) return other.bootId === bootId() ? other : one;
  return one.at > other.at ? one : other;
}
