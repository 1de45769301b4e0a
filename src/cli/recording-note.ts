import { closeSync, constants, fchmodSync, fchownSync, readSync, writeSync } from 'node:fs';
import { uptime as secondsUp } from 'node:os';
import { join } from 'node:path';

import { ExitwatchError, reasonOf } from '../common/errors.js';
import { isObject } from '../common/is-object.js';
import { bytesAt } from '../common/small-file.js';
import { bootId } from '../identity/boot-id.js';
import { JournalDirectory } from '../journal/journal-directory.js';
import { openFile } from '../memory/state-folder.js';

const { O_CREAT, O_RDWR } = constants;

const FILE = 'recording';
const BYTES = 128;

/** A moment, and the boot of then. */
export interface Recorded {
  at: Date;
  bootId: string | null;
  /** The same by CLOCK_BOOTTIME, in seconds; `null`: unknown. */
  uptime: number | null;
}

/** What a recording has noted. */
export interface Noted extends Recorded {
  /** It counted ends, whose number may have been lost since then. */
  counts: boolean;
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
   * `dir` belongs to us. `gid`: a group that may read it.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`
   */
  constructor(dir: string, gid?: number) {
    try {
      this.#file = openFile(join(dir, FILE), O_RDWR | O_CREAT);
      if (gid !== undefined) {
        fchownSync(this.#file, -1, gid);
        fchmodSync(this.#file, 0o640);
      }
    } catch (error) {
      const detail = `${JSON.stringify(dir)} cannot be used: ${reasonOf(error)}`;
      throw new ExitwatchError('ERR_EXITWATCH_STATE_DIR', detail, { cause: error });
    }
  }

  /** What an earlier recording has noted; `null`: nothing. */
  read(): Noted | null {
    const bytes = Buffer.alloc(BYTES);
    return noteIn(bytes.toString('utf8', 0, readSync(this.#file, bytes, 0, BYTES, 0)));
  }

  /** All ends until so long ago, in ms, are on disk, or somebody else remembers them. */
  set(agoMs: number, counts: boolean): void {
    if (this.#isClosed) return;
    const at = new Date(Date.now() - agoMs);
    const uptime = Math.floor(secondsUp() - agoMs / 1000);
    const text = JSON.stringify({ at, bootId: bootId(), uptime, counts });
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

function noteIn(text: string): Noted | null {
  try {
    const note: unknown = JSON.parse(text);
    if (!isObject(note)) return null;
    const { at, bootId, uptime, counts } = note;
    if (typeof bootId !== 'string') return null;
    const date = new Date(String(at));
    if (Number.isNaN(date.getTime())) return null;
    return {
      ...{ at: date, bootId, uptime: typeof uptime === 'number' ? uptime : null },
      counts: counts === true,
    };
  } catch {
    return null; // empty, or torn
  }
}

/** Recordings note each 10 s that they record, unless their disk is slow. */
const SILENCE_MS = 60_000;

/**
 * Since when nothing has been recorded in the journal of this directory; `null`: something is recording, or nobody
 * knows, because it is not of `exitwatch record`.
 */
export async function stoppedAt(dir: string): Promise<Date | null> {
  let file;
  try {
    file = await (await JournalDirectory.open(dir)).file(FILE);
    if (file === null) return null;
    const note = noteIn((await bytesAt(file, 0, BYTES)).toString('utf8'));
    return note !== null && (!isNow(note) || ageMs(note) > SILENCE_MS) ? note.at : null;
  } catch {
    return null; // we may not read it
  } finally {
    await file?.close();
  }
}

export function describeStop(stopped: Date): string {
  return `Nothing has been recorded since ${stopped.toISOString()}.`;
}

/**
 * Until when an earlier recording has recorded; `null`: never. `row`: the last row. What was counted since the note is in
 * none. Times of another boot may be of another clock.
 */
export function lastRecorded(
  row: Omit<Recorded, 'uptime'> | null,
  note: Noted | null,
): Recorded | null {
  if (row === null || note === null) return note ?? (row && { ...row, uptime: null });
  const isNote = row.bootId === note.bootId ? note.counts || note.at >= row.at : isNow(note);
  return isNote ? note : { ...row, uptime: null };
}

function isNow(recorded: Recorded): boolean {
  return recorded.bootId === bootId();
}

/** How long ago it was, in ms. */
export function ageMs(recorded: Recorded): number {
  const { at, uptime } = recorded;
  if (uptime !== null && isNow(recorded)) return (secondsUp() - uptime) * 1000;
  return Date.now() - at.getTime();
}
