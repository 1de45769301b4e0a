import { constants } from 'node:fs';
import { lstat, open, rename, unlink, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';

import { regular } from '../../common/small-file.js';

import { inFolder, openFolderOf } from './open-folder.js';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR, O_WRONLY } = constants;
const PIECE_BYTES = 1 << 20;

/**
 * Moves what a log has into `FILE.1`, while its writers have the file open. They are paused only
 * while the last of it is copied: nothing is lost. If we are killed between the copy and the
 * truncation, what was copied is in both.
 */
export async function rotateLog(
  path: string,
  keep: number,
  whilePaused: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const folder = await openFolderOf(path);
  try {
    await rotate(inFolder(folder, basename(path)), keep, whilePaused);
  } finally {
    await folder.close();
  }
}

async function rotate(
  path: string,
  keep: number,
  whilePaused: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const log = await open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  const temporary = `${path}.rotating`;
  try {
    const { mode, uid, gid } = await regular(log);
    await unlink(temporary).catch(() => undefined); // of somebody who was killed before the rename
    const copy = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode & 0o777);
    try {
      if (process.geteuid?.() === 0) await copy.chown(uid, gid);
      let at = await copyFrom(log, copy, 0);
      await copy.sync(); // most of it: the pause is short then
      await whilePaused(async () => {
        at = await copyFrom(log, copy, at);
        await copy.sync();
        await shift(path, keep);
        if (keep > 0) await rename(temporary, `${path}.1`);
        await copyFrom(log, copy, at); // a stop lets it go on
        await log.truncate(0);
      });
    } finally {
      await copy.close();
      await unlink(temporary).catch(() => undefined);
    }
  } finally {
    await log.close();
  }
}

/** Returns where it stopped: the end of the file. */
async function copyFrom(from: FileHandle, to: FileHandle, start: number): Promise<number> {
  const piece = Buffer.alloc(PIECE_BYTES);
  for (let at = start; ;) {
    const { bytesRead } = await from.read(piece, 0, piece.length, at);
    if (bytesRead === 0) return at;
    for (let written = 0; written < bytesRead;) {
      written += (await to.write(piece, written, bytesRead - written, at + written)).bytesWritten;
    }
    at += bytesRead;
  }
}

/** Makes room for `FILE.1`. A number that is free, because that was interrupted, is taken first. */
async function shift(path: string, keep: number): Promise<void> {
  let last = 1;
  while (last < keep && (await isThere(`${path}.${last}`))) last++;
  for (let i = last - 1; i > 0; i--) await rename(`${path}.${i}`, `${path}.${i + 1}`);
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
