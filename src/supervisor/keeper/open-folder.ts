import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readlink } from 'node:fs/promises';
import { dirname } from 'node:path';

const { O_DIRECTORY, O_NOFOLLOW } = constants;
/** Of Linux; Node.js does not name it. */
const O_PATH = 0o10000000;
const MOST_LINKS = 40;

/**
 * Opens the folder of a file as native/keeper/folder.c does: whoever owns one of the folders above cannot
 * have us go elsewhere by a link. Those of root and of our own user are followed, and those of another user only to a
 * folder of the same one.
 */
export async function openFolderOf(path: string): Promise<FileHandle> {
  let left = namesOf(dirname(path));
  let folder = await open('/', O_PATH | O_DIRECTORY);
  try {
    const strangers = new Set<number>();
    for (let links = 0; ;) {
      const [name, ...rest] = left;
      if (name === undefined) {
        if (strangers.size > 0) strangers.add((await folder.stat()).uid);
        if (strangers.size > 1) throw refused(path);
        return folder;
      }
      const there = inFolder(folder, name);
      const link = await linkAt(there);
      const target = link?.target ?? null;
      left = rest;
      if (link !== null) {
        if (++links > MOST_LINKS) throw refused(path);
        if (link.uid !== 0 && link.uid !== process.geteuid?.()) strangers.add(link.uid);
        left = [...namesOf(link.target), ...rest];
      }
      if (target !== null && !target.startsWith('/')) continue;
      const next = await open(target === null ? there : '/', O_PATH | O_DIRECTORY | O_NOFOLLOW);
      await folder.close();
      folder = next;
    }
  } catch (error) {
    await folder.close();
    throw error;
  }
}

/** The path of what is in an open folder, whatever becomes of the path of that. */
export function inFolder({ fd }: FileHandle, name: string): string {
  return `/proc/self/fd/${fd}/${name}`; // not join(), which would leave out `..`
}

const namesOf = (path: string) => path.split('/').filter((name) => name !== '');

/** What a link says, and whose it is; `null`: it is none. */
async function linkAt(path: string): Promise<{ target: string; uid: number } | null> {
  const before = await lstat(path, { bigint: true });
  if (!before.isSymbolicLink()) return null;
  const target = await readlink(path);
  // Whoever can move it could have put another one in its place meanwhile, which changes its ctime.
  const { ino, ctimeNs } = await lstat(path, { bigint: true });
  if (ino !== before.ino || ctimeNs !== before.ctimeNs) throw refused(path);
  return { target, uid: Number(before.uid) };
}

function refused(path: string): NodeJS.ErrnoException {
  const error = new Error(`${JSON.stringify(path)} is or has a link of a stranger`);
  return Object.assign(error, { code: 'ELOOP' });
}
