import { constants } from 'node:fs';
import { open, rename, unlink, type FileHandle } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';

import type { FileOwnership } from './file-trust.js';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** The content of a small file, and who may have written it. */
export interface SmallFile extends FileOwnership {
  bytes: Buffer;
  /** The file is longer than requested. */
  isCut: boolean;
}

/**
 * Reads at most `most` bytes of a regular file. Does not follow a symbolic link at the end of the
 * path, and never blocks on a fifo.
 *
 * Rejects with ELOOP for a symbolic link, with EINVAL for anything else that is not a regular file,
 * and with the errors of open(2).
 */
export async function readSmallFile(path: string, most: number): Promise<SmallFile> {
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const { uid, mode } = await regular(file);
    const buffer = Buffer.alloc(most + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    const bytes = buffer.subarray(0, Math.min(bytesRead, most));
    return { bytes, isCut: bytesRead > most, uid, mode };
  } finally {
    await file.close();
  }
}

/** So many bytes of a file, or fewer at its end. */
export async function bytesAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  let taken = 0;
  while (taken < length) {
    const { bytesRead } = await file.read(bytes, taken, length - taken, offset + taken);
    if (bytesRead === 0) break;
    taken += bytesRead;
  }
  return bytes.subarray(0, taken);
}

/** Replaces a file atomically: a reader sees the old or the new one. Durable when it resolves. */
export async function replaceFile(path: string, content: string): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Resolves when files created, renamed or removed in the folder are durable. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return; // it has no such call
  const folder = await open(path, O_RDONLY | O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The status of a regular file; rejects with EINVAL for anything else. */
export async function regular(file: FileHandle) {
  const status = await file.stat();
  if (status.isFile()) return status;
  throw Object.assign(new Error('EINVAL: not a regular file'), { code: 'EINVAL' });
}
