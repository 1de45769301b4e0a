import { closeSync, constants, fstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { isObject } from '../common/is-object.js';
import type { ExitEvent } from '../events/exit-event.js';
import { isExitJson, reviveExit } from '../events/revive.js';
import { checkIdentity, type ProcessIdentity } from '../identity/process-identity.js';

import { openFile, type StateFolder, writeAll } from './state-folder.js';

const { O_APPEND, O_CREAT, O_RDWR } = constants;

/** A watch that outlives the monitor that made it. */
export interface StoredWatch {
  /** Never given out again in this folder. */
  watch: number;
  /** The caller's name for it. */
  key: string | null;
  identity: ProcessIdentity;
  /** When it was made. */
  at: Date;
  /** Its exit, if a monitor has seen it and nobody has committed it. */
  exit: ExitEvent | null;
}

const FILE = 'watches';
const IDS = 'next-watch';

/** How many ids are reserved at once: that takes a write to the disk. */
const BLOCK = 1024;

/** Rewrite the log when it has so many lines that mean nothing any more. */
const MOST_DEAD = 4096;

/**
 * The watches of a monitor, in a file of JSON lines. A line is written before what it announces is done:
 * so after a crash, each watch is known whose `watch()` has returned.
 *
 * A line is safe from our own death when it is written. A power failure may lose it, but then its
 * process is gone as well.
 */
export class WatchLog {
  readonly #folder: StateFolder;
  readonly #watches = new Map<number, StoredWatch>();
  #file: number;
  #next: number;
  #reserved: number;
  #dead = 0;

  /** @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR` */
  constructor(folder: StateFolder) {
    this.#folder = folder;
    this.#file = -1;
    try {
      this.#next = this.#reserved = readNext(folder);
      this.#file = this.#open();
      for (const line of readFileSync(this.#file, 'utf8').split('\n')) this.#take(line);
      this.#compact();
    } catch (error) {
      this.close();
      throw folder.error(error);
    }
  }

  /** All that were not forgotten, the oldest first. */
  get watches(): StoredWatch[] {
    return [...this.#watches.values()];
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`: then do not arm the watch. */
  add(identity: ProcessIdentity, key: string | null): StoredWatch {
    this.#checkFile();
    if (this.#next === this.#reserved) this.#reserve();
    const watch = { watch: this.#next++, key, identity, at: new Date(), exit: null };
    this.#write({ event: 'watch', ...watch });
    this.#watches.set(watch.watch, watch);
    return watch;
  }

  /** It has exited: the next monitor delivers that again, unless it is forgotten before. */
  setExit(watch: number, exit: ExitEvent): void {
    const stored = this.#watches.get(watch);
    if (stored === undefined) return;
    this.#write({ event: 'exit', watch, exit });
    stored.exit = exit;
    this.#dead++;
  }

  forget(watch: number): void {
    if (!this.#watches.has(watch)) return;
    this.#write({ event: 'forgotten', watch });
    this.#watches.delete(watch);
    this.#dead += 2;
    if (this.#dead >= MOST_DEAD) this.#compact();
  }

  /** Nothing is written afterwards. */
  close(): void {
    if (this.#file >= 0) closeSync(this.#file);
    this.#file = -1;
  }

  #open(): number {
    return openFile(join(this.#folder.path, FILE), O_RDWR | O_APPEND | O_CREAT);
  }

  /** @throws ExitwatchError if nobody would find what is written to it */
  #checkFile(): void {
    if (fstatSync(this.#file).nlink > 0) return;
    throw this.#folder.error(new Error('it was removed'));
  }

  #write(record: object): void {
    if (this.#file < 0) return;
    try {
      // The leading newline ends a line that a crash has torn.
      writeAll(this.#file, `\n${JSON.stringify(record)}\n`);
    } catch (error) {
      throw this.#folder.error(error);
    }
  }

  /** On disk before an id is used, so that no id is used twice, even after a power failure. */
  #reserve(): void {
    this.#folder.replace(IDS, `${this.#next + BLOCK}\n`);
    this.#reserved = this.#next + BLOCK;
  }

  #compact(): void {
    const lines = this.watches.map(({ exit, ...watch }) => {
      const line = JSON.stringify({ event: 'watch', ...watch });
      return exit === null
        ? line
        : `${line}\n${JSON.stringify({ event: 'exit', watch: watch.watch, exit })}`;
    });
    this.#folder.replace(FILE, lines.map((line) => `${line}\n`).join(''));
    const file = this.#open();
    this.close();
    this.#file = file;
    this.#dead = 0;
  }

  #take(line: string): void {
    const record = parse(line);
    const watch = record?.['watch'];
    if (record === null || !isWatchId(watch)) return;
    // An id that a line has was reserved, whatever the other file says.
    if (watch >= this.#next) this.#next = this.#reserved = watch + 1;
    if (record['event'] === 'forgotten') this.#watches.delete(watch);
    else if (record['event'] === 'exit') this.#takeExit(watch, record['exit']);
    else if (record['event'] === 'watch') this.#takeWatch(watch, record);
  }

  #takeWatch(watch: number, { key, identity, at }: Record<string, unknown>): void {
    try {
      checkIdentity(identity);
    } catch {
      return; // torn, or of another version
    }
    const name = typeof key === 'string' ? key : null;
    this.#watches.set(watch, { watch, key: name, identity, at: new Date(String(at)), exit: null });
  }

  #takeExit(watch: number, exit: unknown): void {
    const stored = this.#watches.get(watch);
    if (stored === undefined || !isObject(exit)) return;
    const { id, pid } = stored.identity;
    if (exit['id'] !== id || exit['pid'] !== pid || !isExitJson(exit)) return;
    stored.exit = { ...reviveExit(exit), isRepeated: true };
  }
}

/** Far more than can be given out, and far from where numbers stop being exact. */
const MOST_ID = 2 ** 52;

function isWatchId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) < MOST_ID;
}

function readNext(folder: StateFolder): number {
  const text = folder.read(IDS);
  const next = text === null ? 1 : Number(text);
  if (isWatchId(next)) return next;
  throw new Error(`its file ${IDS} is damaged`);
}

function parse(line: string): Record<string, unknown> | null {
  if (line === '') return null;
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null; // torn
  }
}
