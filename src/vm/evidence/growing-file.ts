import { constants, type Stats } from 'node:fs';
import { open, statfs } from 'node:fs/promises';

import { distrustOf } from '../../common/file-trust.js';
import { LineSplitter } from '../../common/line-splitter.js';

const MOST_LINE_BYTES = 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

/** Years of output. Of a larger file, only the end is read. */
const MOST_BYTES = 64 * 1024 * 1024;

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** Follows a growing file of lines. Each read continues where the last one stopped. */
export class GrowingFile {
  readonly path: string;
  readonly #onLine: (line: string) => void;
  #lines = new LineSplitter(MOST_LINE_BYTES);
  #position: number;
  #inode = 0;
  #reading: Promise<boolean> = Promise.resolve(true);

  /** The file was replaced, truncated, or too large to read in full: lines may be missing. */
  wasReplaced = false;
  /** The users who may have written the file; `null` trusts everybody. */
  trustedUids: readonly number[] | null = null;
  /** Why the file is not trusted; `null`: no objection. */
  refusal: string | null = null;
  /** Time of the last write (mtime); `null`: not read yet. */
  modifiedAt: Date | null = null;
  /** The disk was nearly full when the file was read, so some writes may have failed. */
  wasFull = false;
  /** Why the last read failed although the file may exist: no descriptor was free, say. */
  failure: Error | null = null;

  /** Skips everything before `position`. */
  constructor(path: string, onLine: (line: string) => void, position = 0) {
    this.path = path;
    this.#onLine = onLine;
    this.#position = position;
  }

  /** Reads new lines. Resolves with true if the file exists and was read completely. */
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
      // The file was replaced or truncated: read it from the beginning.
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
        // A new buffer each time: the splitter keeps slices of it for an unfinished line.
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

/** Less free space than this counts as a full disk. */
const LEAST_BYTES = 64 * 1024;

async function isFull(path: string): Promise<boolean> {
  const { bavail, bsize, blocks } = await statfs(path);
  return blocks > 0 && bavail * bsize < LEAST_BYTES;
}

/** A user who can write the file can put words into the hypervisor's mouth. */
function refusalOf(status: Stats, trustedUids: readonly number[] | null): string | null {
  if (!status.isFile()) return 'is not a regular file';
  return distrustOf(status, trustedUids, 'group');
}
