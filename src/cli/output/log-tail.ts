import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import type { WriteStream } from 'node:tty';

const LOOK_MS = 200;
const CHUNK_BYTES = 64 * 1024;
/** The clock of a file system may be so much behind. */
const CLOCK_MS = 20;
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;
/** See `logs.keep`. */
const MOST_ROTATED = 1000;

/** What a terminal may interpret, other than line feeds, tabs and colors. */
const UNSAFE = new RegExp(String.raw`\x1b\[[\d;]*m|[^\P{Cc}\n\t]`, 'gu');

/** The end of a log file, also while it is rotated. */
export class LogTail {
  readonly #path: string;
  readonly #out: WriteStream;
  readonly #onLost: () => void;
  readonly #decoder = new StringDecoder('utf8');
  #file: FileHandle | null = null;
  #offset = 0;
  #lookedAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param onLost lines were removed before they could be printed */
  constructor(path: string, out: WriteStream, onLost: () => void) {
    this.#path = path;
    this.#out = out;
    this.#onLost = onLost;
  }

  /** Also of files that were moved away. Rejects with the error of the system, unless the file is missing. */
  async printLast(lines: number): Promise<void> {
    this.#lookedAtMs = Date.now();
    if (!(await this.#open(this.#path))) return;
    const { size } = await this.#stat();
    let found = await lastOf(this.#file, size, lines);
    this.#offset = size;
    for (let number = 1; number <= MOST_ROTATED && count(found) < lines; number++) {
      const before = await open(this.#rotated(number), FLAGS).catch(() => null);
      if (before === null) break;
      try {
        const { size: length } = await before.stat();
        found = Buffer.concat([await lastOf(before, length, lines - count(found)), found]);
      } finally {
        await before.close();
      }
    }
    this.#print(lastLines(found, lines));
  }

  /** Prints what is written from now on, until `close()`. */
  follow(): void {
    const look = () => {
      void this.#look()
        .catch(() => undefined) // it is looked for again
        .then(() => {
          if (!this.#isClosed) this.#timer = setTimeout(look, LOOK_MS);
        });
    };
    look();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    void this.#file?.close();
    this.#file = null;
  }

  async #look(): Promise<void> {
    if (this.#file === null && !(await this.#open(this.#path))) return;
    // As often as it was rotated since the last look.
    do {
      await this.#printRest();
    } while (!this.#isClosed && (await this.#goOn()));
  }

  /** Goes on with the file that was begun after this one was moved away. `false`: it was not. */
  async #goOn(): Promise<boolean> {
    for (;;) {
      const here = await this.#stat();
      const place = await this.#placeOf(here);
      if (place === 0) return false;
      // What was written before it was moved away; moved files are not written any more.
      await this.#printRest();
      const before = this.#file;
      if (!(await this.#open(place === null ? this.#path : this.#rotated(place - 1)))) return false;
      // Not if others were moved in the meantime: this might not be the next one.
      const isNext = place === null || (await this.#placeOf(here)) === place;
      if (isNext) {
        await before?.close();
        this.#offset = 0;
        if (place === null) this.#onLost();
        return true;
      }
      await this.#file?.close();
      this.#file = before;
    }
  }

  /** Which of the rotated files it is: 0 is the one that is written; `null`: it is removed. */
  async #placeOf(wanted: { ino: number; dev: number }): Promise<number | null> {
    let missing = 0;
    // One number is missing while the others are moved.
    for (let number = 0; number <= MOST_ROTATED && missing < 2; number++) {
      const there = await stat(this.#rotated(number)).catch(() => null);
      if (there?.ino === wanted.ino && there.dev === wanted.dev) return number;
      missing = there === null ? missing + 1 : 0;
    }
    return null;
  }

  #rotated(number: number): string {
    return number === 0 ? this.#path : `${this.#path}.${number}`;
  }

  async #printRest(): Promise<void> {
    const now = Date.now();
    const { size } = await this.#stat();
    if (size < this.#offset) {
      await this.#printCopied();
      this.#offset = 0;
    }
    this.#lookedAtMs = now;
    while (this.#offset < size && !this.#isClosed) {
      const chunk = await this.#read(this.#offset, Math.min(CHUNK_BYTES, size - this.#offset));
      if (chunk.length === 0) return;
      this.#offset += chunk.length;
      this.#print(chunk);
    }
  }

  /** It was cut: what was not printed is in its copy, if it was rotated by one since the last look. */
  async #printCopied(): Promise<void> {
    const copy = await open(this.#rotated(1), FLAGS).catch(() => null);
    if (copy === null) return;
    try {
      const { size, ctimeMs } = await copy.stat();
      if (ctimeMs < this.#lookedAtMs - CLOCK_MS) return;
      while (this.#offset < size && !this.#isClosed) {
        const length = Math.min(CHUNK_BYTES, size - this.#offset);
        const chunk = await readAt(copy, this.#offset, length);
        if (chunk.length === 0) return;
        this.#offset += chunk.length;
        this.#print(chunk);
      }
    } finally {
      await copy.close();
    }
  }

  async #open(path: string): Promise<boolean> {
    try {
      const file = await open(path, FLAGS);
      if (this.#isClosed) {
        await file.close();
        return false;
      }
      this.#file = file;
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
  }

  async #stat() {
    if (this.#file === null) throw new Error('it is closed');
    return this.#file.stat();
  }

  async #read(offset: number, length: number): Promise<Buffer> {
    return readAt(this.#file, offset, length);
  }

  /** As it is into a file; without what a terminal would obey otherwise. */
  #print(bytes: Buffer): void {
    if (!this.#out.isTTY) {
      this.#out.write(bytes);
      return;
    }
    const text = this.#decoder.write(bytes);
    this.#out.write(text.replace(UNSAFE, (found) => (found.length > 1 ? found : '\ufffd')));
  }
}

async function readAt(file: FileHandle | null, offset: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const { bytesRead = 0 } = (await file?.read(buffer, 0, length, offset)) ?? {};
  return buffer.subarray(0, bytesRead);
}

/** One more line feed than lines, or the whole file. */
async function lastOf(file: FileHandle | null, size: number, lines: number): Promise<Buffer> {
  let begin = size;
  let found = Buffer.alloc(0);
  while (begin > 0 && count(found) <= lines && lines > 0) {
    const length = Math.min(CHUNK_BYTES, begin);
    begin -= length;
    found = Buffer.concat([await readAt(file, begin, length), found]);
  }
  return found;
}

function count(bytes: Buffer): number {
  let found = 0;
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) found++;
  return found;
}

function lastLines(bytes: Buffer, lines: number): Buffer {
  if (lines === 0) return Buffer.alloc(0);
  let begin = bytes.length;
  let end = bytes.at(-1) === 10 ? bytes.length - 1 : bytes.length;
  for (let left = lines; left > 0; left--) {
    const at = end === 0 ? -1 : bytes.lastIndexOf(10, end - 1);
    begin = at + 1;
    if (at === -1) break;
    end = at;
  }
  return bytes.subarray(begin);
}
