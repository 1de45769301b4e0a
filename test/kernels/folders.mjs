import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const REPOSITORY = join(import.meta.dirname, '..', '..');

/** A folder of the cache, which is made. */
export function cacheFolder(...names) {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(base, 'exitwatch', 'kernels', ...names);
  mkdirSync(folder, { recursive: true });
  return folder;
}
