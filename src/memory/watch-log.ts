import { closeSync, constants, fdatasyncSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { distrustOf } from '../common/file-trust.js';
import { isObject } from '../common/is-object.js';
import type { ExitEvent } from '../events/exit-event.js';
import { checkIdentity, type ProcessIdentity } from '../identity/process-identity.js';

import { StateFolder, writeAll } from './state-folder.js';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;

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
 * A line is safe from our own death when it is written. It is safe from a power failure after
 * {@link WatchLog.sync}; but then its process is gone as well.
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
    try {
      this.#next = this.#reserved = readNext(folder);
      this.#file = this.#open();
      for (const line of readFileSync(this.#file, 'utf8').split('\n')) this.#take(line);
      this.#compact();
    } catch (error) {
      throw folder.error(error);
    }
  }

  /** All that were not forgotten, the oldest first. */
  get watches(): StoredWatch[] {
    return [...this.#watches.values()];
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`: then do not arm the watch. */
  add(identity: ProcessIdentity, key: string | null): StoredWatch {
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
    if (!this.#watches.delete(watch)) return;
    this.#write({ event: 'forgotten', watch });
    this.#dead += 2;
    if (this.#dead >= MOST_DEAD) this.#compact();
  }

  /** What was written is on disk when this returns. */
  sync(): void {
    try {
      fdatasyncSync(this.#file);
    } catch (error) {
      throw this.#folder.error(error);
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #open(): number {
    const path = join(this.#folder.path, FILE);
    const flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
    const file = openSync(path, flags, 0o600);
    try {
      const status = fstatSync(file);
      if (!status.isFile()) throw new Error('the list of watches is not a file');
      const distrust = distrustOf(status);
      if (distrust !== null) throw new Error(`its list of watches ${distrust}`);
      return file;
    } catch (error) {
      closeSync(file);
      throw error;
    }
  }

  #write(record: object): void {
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
    closeSync(this.#file);
    this.#file = this.#open();
    this.#dead = 0;
  }

  #take(line: string): void {
    const record = parse(line);
    if (record === null || !Number.isSafeInteger(record['watch'])) return;
    const watch = record['watch'] as number;
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
    if (stored !== undefined && isObject(exit)) stored.exit = reviveExit(exit);
  }
}

function readNext(folder: StateFolder): number {
  let text;
  try {
    text = readFileSync(join(folder.path, IDS), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 1;
    throw error;
  }
  const next = Number(text);
  if (Number.isSafeInteger(next) && next > 0) return next;
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

const DATES = ['startedAt', 'exitedAt', 'tracedSince'] as const;

/** As it was before it became JSON. */
function reviveExit(exit: Record<string, unknown>): ExitEvent {
  const dates = Object.fromEntries(
    DATES.map((name) => {
      const date = exit[name];
      return [name, typeof date === 'string' ? new Date(date) : null];
    }),
  );
  const reviveSender = (sender: unknown) =>
    isObject(sender) ? { ...sender, sentAt: new Date(String(sender['sentAt'])) } : null;
  const received = Array.isArray(exit['signalsReceived']) ? exit['signalsReceived'] : [];
  return {
    ...exit,
    ...dates,
    sender: reviveSender(exit['sender']),
    raisedAfter: reviveSender(exit['raisedAfter']),
    signalsReceived: received.map(reviveSender),
    isRepeated: true,
  } as unknown as ExitEvent;
}
