import { execFileSync } from 'node:child_process';
import { type Dirent, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import type { Leak } from './leak';

/** What a test file has left in its folder for temporary files. The folder goes if it is empty. */
export function leftIn(folder: string): Leak[] {
  try {
    rmdirSync(folder);
    return [];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
  }
  const mounts = mountsIn(folder);
  const contents = [...mounts.map(asLeak), ...leavesOf(folder, mounts)];
  const [first = { kind: 'a folder', name: folder }, ...rest] = contents;
  const remove = () => {
    // The last one that was mounted may be in another.
    for (const { path } of mounts.toReversed()) execFileSync('umount', ['--lazy', path]);
    rmSync(folder, { recursive: true, force: true });
  };
  return [{ ...first, remove }, ...rest];
}

interface Mount {
  path: string;
  type: string;
}

function mountsIn(folder: string): Mount[] {
  const mounts = readFileSync('/proc/self/mounts', 'latin1').split('\n');
  return mounts.flatMap((line) => {
    const [, path = '', type = ''] = line.split(' ');
    return path.startsWith(`${folder}/`) ? [{ path, type }] : [];
  });
}

function asLeak({ path, type }: Mount): Leak {
  return { kind: 'a mount', name: `${path} (${type})` };
}

/** Files, sockets, pins and empty folders. */
function leavesOf(folder: string, mounts: readonly Mount[], isPinned = false): Leak[] {
  return entriesOf(folder).flatMap((entry) => {
    const name = join(folder, entry.name);
    if (!entry.isDirectory()) return [{ kind: kindOf(entry, isPinned), name }];
    const mount = mounts.find(({ path }) => path === name);
    // Another file system may be that of the host, or endless as /proc.
    if (mount !== undefined && mount.type !== 'bpf') return [];
    const leaves = leavesOf(name, mounts, isPinned || mount !== undefined);
    return leaves.length > 0 || mount !== undefined ? leaves : [{ kind: 'a folder', name }];
  });
}

/** Empty if it has just been removed, or belongs to another user. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function kindOf(entry: Dirent, isPinned: boolean): string {
  if (isPinned) return 'a pin';
  return entry.isSocket() ? 'a socket' : 'a file';
}
