import { constants } from 'node:fs';
import { open, rename, unlink, type FileHandle } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';

import type { FileOwnership } from './file-trust.js';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** What a small file holds, and who may have written it. */
export interface SmallFile extends FileOwnership {
  bytes: Buffer;
  /** There is more than was asked for. */
  isCut: boolean;
}

/**
 * Reads a regular file of at most so many bytes. No symbolic link is followed at the end of the path,
 * and nothing is waited for (a fifo).
 *
 * Rejects with ELOOP for a symbolic link, with EINVAL for anything else that is no regular file, and with
 * what open(2) fails with.
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

/** Replaces a file in one go, so that who reads it sees the old or the new; durable when it resolves. */
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

/** Resolves when what was created, renamed or removed in it is durable. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return; // which has no such call
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
