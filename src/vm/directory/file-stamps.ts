import { lstat } from 'node:fs/promises';

/** When a file was made, or changed last; `null`: there is none. */
export async function madeAtOf(path: string): Promise<Date | null> {
  const status = await lstat(path).catch(() => null);
  return status?.mtime ?? null;
}

/** When a file came to be; `null`: there is none, or nobody knows. */
export async function bornAtOf(path: string): Promise<Date | null> {
  const status = await lstat(path).catch(() => null);
  return status === null || status.birthtimeMs === 0 ? null : status.birthtime;
}

/** Which file it is: an inode's number alone is soon another's. `null`: there is none. */
export async function idOf(path: string): Promise<string | null> {
  const status = await lstat(path).catch(() => null);
  return status === null ? null : `${status.dev}:${status.ino}:${status.birthtimeMs}`;
}
