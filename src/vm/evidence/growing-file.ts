import { constants, type Stats } from 'node:fs';
import { open, statfs } from 'node:fs/promises';

import { distrustOf } from '../../common/file-trust.js';
import { LineSplitter } from '../../common/line-splitter.js';

const MOST_LINE_BYTES = 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

/** More than it says in years; of more, the end. */
const MOST_BYTES = 64 * 1024 * 1024;

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** Follows a file of lines that grows, from where it was read last. */
export class GrowingFile {
  readonly path: string;
  readonly #onLine: (line: string) => void;
  #lines = new LineSplitter(MOST_LINE_BYTES);
  #position: number;
  #inode = 0;
  #reading: Promise<boolean> = Promise.resolve(true);

  /** It was another file, or longer, before: something may be missing. */
  wasReplaced = false;
  /** The users who may have written it; `null`: anybody. */
  trustedUids: readonly number[] | null = null;
  /** Why it is not believed; `null`: nothing is against it. */
  refusal: string | null = null;
  /** When it was written to last, by its time; `null`: it was not read. */
  modifiedAt: Date | null = null;
  /** Its disk had hardly any room when it was read: what was to be written may be missing. */
  wasFull = false;
  /** Why it could not be read just now, though it may be there: a descriptor was lacking, say. */
  failure: Error | null = null;

  /** `position`: what comes before it is of no interest. */
  constructor(path: string, onLine: (line: string) => void, position = 0) {
    this.path = path;
    this.#onLine = onLine;
    this.#position = position;
  }

  /** Reads what is new. Resolves with whether there is such a file, and all of it could be read. */
  read(): Promise<boolean> {
    this.#reading = this.#reading.then(() => this.#readOn());
    return this.#reading;
  }

  async #readOn(): Promise<boolean> {
    let file;
    this.failure = null;
    try {
      file = await open(this.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.failure = error as Error;
      return false;
    }
    try {
      const status = await file.stat();
      this.refusal = refusalOf(status, this.trustedUids);
      if (this.refusal !== null) return false;
      // Another file by now, or one that was cut: its beginning is new.
      if ((this.#inode !== 0 && this.#inode !== status.ino) || status.size < this.#position) {
        this.wasReplaced = true;
        this.#position = 0;
        this.#lines = new LineSplitter(MOST_LINE_BYTES);
      }
      this.#inode = status.ino;
      this.modifiedAt = status.mtime;
      if (await isFull(this.path)) this.wasFull = true;
      if (status.size - this.#position > MOST_BYTES) {
        this.wasReplaced = true;
        this.#position = status.size - MOST_BYTES;
      }
      for (;;) {
        // Of its own: what is not a whole line yet is kept.
        const chunk = Buffer.alloc(CHUNK_BYTES);
        const { bytesRead } = await file.read(chunk, 0, chunk.length, this.#position);
        if (bytesRead === 0) return true;
        this.#position += bytesRead;
        for (const line of this.#lines.push(chunk.subarray(0, bytesRead))) this.#onLine(line);
      }
    } catch (error) {
      this.failure = error as Error;
      return false;
    } finally {
      await file.close();
    }
  }
}

/** Some words more, and there is no room left. */
const LEAST_BYTES = 64 * 1024;

async function isFull(path: string): Promise<boolean> {
  const { bavail, bsize, blocks } = await statfs(path);
  return blocks > 0 && bavail * bsize < LEAST_BYTES;
}

/** A user who can write it can say anything in the hypervisor's name. */
function refusalOf(status: Stats, trustedUids: readonly number[] | null): string | null {
  if (!status.isFile()) return 'is no regular file';
  return distrustOf(status, trustedUids, 'group');
}
