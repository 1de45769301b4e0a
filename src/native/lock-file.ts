import { spawnSync } from 'node:child_process';

import { KEEPER_IN_USE, KEEPER_NAME, usableFile } from './binary-places.js';
import { addonRefusal, loadAddon } from './load-addon.js';

/**
 * Locks an open file by flock(2), until it is closed. Without an addon a child does it: the lock is that of
 * the open file, which the two share. If there is no program for that either, nothing is locked.
 *
 * @returns `false`: somebody else has the lock
 */
export function lockFile(file: number): boolean {
  if (addonRefusal() === null) return loadAddon().lockFile(file);
  const { path } = usableFile(KEEPER_NAME);
  if (path === null) return true;
  const { status, error } = spawnSync(path, ['lock'], { stdio: [file, 'ignore', 'ignore'] });
  if (error !== undefined) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['EACCES', 'ENOENT', 'ENOEXEC', 'EPERM'].includes(code)) return true; // no such program, after all
    throw error;
  }
  if (status !== 0 && status !== KEEPER_IN_USE) {
    throw new Error(`"${path} lock" ended with ${status}`);
  }
  return status === 0;
}
