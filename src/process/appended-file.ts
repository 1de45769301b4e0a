import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';

import { distrustOf } from '../common/file-trust.js';
import { regular, syncFolder } from '../common/small-file.js';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;

/** A file to which several append at a time. It is created if it is missing. */
export class AppendedFile {
  readonly #handle: Promise<FileHandle>;
  #holders = 0;
  #onIdle: (() => void) | undefined;

  constructor(path: string) {
    this.#handle = openForAppending(path);
  }

  /**
   * It stays open until it is released, even if this rejects: as open(2) does, or because it cannot be
   * trusted.
   */
  hold(): Promise<FileHandle> {
    this.#holders++;
    return this.#handle;
  }

  release(): void {
    if (--this.#holders === 0) this.#onIdle?.();
  }

  /** Closes it once nobody holds it. To be called once. */
  async close(): Promise<void> {
    if (this.#holders > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    await (await this.#handle.catch(() => undefined))?.close();
  }

  /** Resolves once the record is on disk. For who holds it. */
  async append(record: object): Promise<void> {
    const file = await this.#handle;
    // The leading newline ends a line that a crash has torn, so that this record stays intact.
    const line = Buffer.from(`\n${JSON.stringify(record)}\n`);
    const { bytesWritten } = await file.write(line);
    if (bytesWritten !== line.length) throw new Error('the disk is full');
    await file.datasync();
  }
}

async function openForAppending(path: string): Promise<FileHandle> {
  const file = await open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    await checkTrust(file);
    await syncFolder(dirname(path));
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Rejects unless it is an ordinary file that nobody else can write. */
export async function checkTrust(file: FileHandle): Promise<void> {
  const distrust = distrustOf(await regular(file));
  if (distrust !== null) throw new Error(`it ${distrust}`);
}
