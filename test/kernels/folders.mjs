import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const REPOSITORY = join(import.meta.dirname, '..', '..');

/** Makes and returns a folder for downloads of the tests. */
export function cache(...names) {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(base, 'exitwatch', ...names);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** The same for tests that boot kernels. */
export const cacheFolder = (...names) => cache('kernels', ...names);
