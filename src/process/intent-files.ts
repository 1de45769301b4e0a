import { lstat, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** `bornAt`: `null` where the file system does not tell. */
export interface IntentFile {
  path: string;
  id: string;
  bornAt: Date | null;
}

/** An intent log, and what rotation has left beside it. */
export interface IntentFiles {
  /** In the order in which they were written to last; the log itself comes last. */
  files: IntentFile[];
  /** What was written up to this time may be in a file that cannot be read; `null`: in none. */
  lostUntil: Date | null;
}

/** How logrotate(8) and others name what they rotate, and what they have not compressed. */
const ROTATED = /^[.-]\d[\d-]*(\.\w+)?$/;
const UNCOMPRESSED = /^[.-]\d[\d-]*$/;

/** Nobody keeps more of them uncompressed. */
const MOST_FILES = 20;

/** Rejects with the errors of readdir(3) and lstat(2), except for a missing folder or file. */
export async function intentFilesOf(path: string): Promise<IntentFiles> {
  const [folder, name] = [dirname(path), basename(path)];
  const names = (await unlessMissing(readdir(folder))) ?? [];
  const rotated = names.filter(
    (each) => each.startsWith(name) && ROTATED.test(each.slice(name.length)),
  );
  const found = [];
  for (const each of [...rotated, name]) {
    const status = await unlessMissing(lstat(join(folder, each)));
    if (status === null) continue;
    const { birthtimeMs, birthtime, dev, ino, mtime } = status;
    found.push({
      ...{ path: each === name ? path : join(folder, each), id: `${dev}:${ino}`, mtime },
      isReadable: each === name || UNCOMPRESSED.test(each.slice(name.length)),
      bornAt: birthtimeMs === 0 ? null : birthtime,
    });
  }
  const last = found.filter((each) => each.path === path);
  const older = found.filter((each) => each.path !== path).sort((a, b) => +a.mtime - +b.mtime);
  const readable = older.filter(({ isReadable }) => isReadable).slice(-MOST_FILES);
  const lost = older.filter((each) => !readable.includes(each)).at(-1);
  return { files: [...readable, ...last], lostUntil: lost?.mtime ?? null };
}

async function unlessMissing<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
