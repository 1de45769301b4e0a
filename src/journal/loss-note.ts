import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  readSync,
  writeSync,
} from 'node:fs';

import { isObject } from '../common/is-object.js';

import type { JournalFolder } from './journal-folder.js';
import type { Dropped } from './row-queue.js';

const { O_CREAT, O_RDWR } = constants;

/** Ends that could not be written. */
export interface Loss extends Dropped {
  /** The number of the row that tells of it. */
  seq: number;
}

const FILE = 'loss';
const BYTES = 256;

/**
 * What a full disk, for example, has cost, until the journal has a row about it. The file has its room from the
 * beginning, so that it can be written while there is none.
 */
export class LossNote {
  readonly #file: number;
  #isEmpty = true;

  constructor(folder: JournalFolder) {
    this.#file = folder.open(FILE, O_RDWR | O_CREAT);
    try {
      if (fstatSync(this.#file).size < BYTES) {
        this.#write('');
        fsyncSync(this.#file);
        folder.sync();
      }
    } catch {
      // The disk is full already. Then the next write tries again.
    }
  }

  /** What an earlier writer has noted; `null`: nothing. */
  read(): Loss | null {
    const bytes = Buffer.alloc(BYTES);
    const text = bytes.toString('utf8', 0, readSync(this.#file, bytes, 0, BYTES, 0)).trim();
    if (text === '') return null;
    this.#isEmpty = false;
    try {
      const loss: unknown = JSON.parse(text);
      if (!isObject(loss)) return null;
      const { seq, from, to, lost } = loss;
      const isWhole = [seq, from, to, lost ?? 0].every((each) => Number.isSafeInteger(each));
      if (!isWhole) return null;
      // Earlier versions took every failure for a full disk.
      const reason = loss['reason'] === 'not-written' ? 'not-written' : 'disk-full';
      return { ...(loss as unknown as Loss), reason };
    } catch {
      return null; // torn
    }
  }

  /** On disk when it returns. */
  set(loss: Loss): void {
    this.#isEmpty = false;
    this.#write(JSON.stringify(loss));
    fdatasyncSync(this.#file);
  }

  /** The journal has told of it. `false`: a file system that copies on write has no room for that. */
  clear(): boolean {
    if (this.#isEmpty) return true;
    try {
      this.#write('');
      fdatasyncSync(this.#file);
      this.#isEmpty = true;
    } catch {
      // Until then it does no harm: the row that it speaks of is there.
    }
    return this.#isEmpty;
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(text: string): void {
    writeSync(this.#file, text.padEnd(BYTES - 1) + '\n', 0);
  }
}
