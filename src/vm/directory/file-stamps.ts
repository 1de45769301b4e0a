import { lstat } from 'node:fs/promises';

/** When a file was made or last changed; `null`: there is none. */
export async function madeAtOf(path: string): Promise<Date | null> {
  const status = await lstat(path).catch(() => null);
  return status?.mtime ?? null;
}

/** When a file was created; `null`: there is none, or the file system does not say. */
export async function bornAtOf(path: string): Promise<Date | null> {
  const status = await lstat(path).catch(() => null);
  return status === null || status.birthtimeMs === 0 ? null : status.birthtime;
}

/**
 * Which file it is, with its birth time, as inode numbers are soon reused; `null`: there is none.
 */
export async function idOf(path: string): Promise<string | null> {
  const status = await lstat(path).catch(() => null);
  return status === null ? null : `${status.dev}:${status.ino}:${status.birthtimeMs}`;
}
