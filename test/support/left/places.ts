import { readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Leak } from './leak';

/** Where tests, or the product, may leave something that is not in a folder of a test file. */
const FOLDERS = [
  ...['/run', '/var/lib', '/var/tmp', '/dev/shm', '/tmp'],
  ...['/etc/systemd/system', '/run/systemd/system', '/run/systemd/transient'],
  ...(process.getuid === undefined ? [] : [`/run/user/${process.getuid()}`]),
];

/** Others use these places, too: what is ours has such a name. */
const OURS = 'exitwatch';

/** Not a leak: the folder of a test file. */
const WITH_ITS_OWN_CHECK = /\/ew-\d+-/;

/** What is there that has our name, outside of the folders of test files. */
export function inPlaces(): Leak[] {
  const found = [...new Set([...FOLDERS, tmpdir()])].flatMap(filesIn);
  for (const line of textOf('/proc/self/mounts').split('\n')) {
    const [, path = '', type = ''] = line.split(' ');
    if (WITH_ITS_OWN_CHECK.test(path)) continue;
    if (type === 'cgroup' || type === 'cgroup2') found.push(...cgroupsIn(path));
    if (type === 'bpf') found.push(...pinsIn(path));
  }
  return found;
}

function filesIn(folder: string): Leak[] {
  return namesIn(folder)
    .filter((name) => name.includes(OURS))
    .map((name) => ({
      kind: 'a file',
      name: join(folder, name),
      remove: () => {
        rmSync(join(folder, name), { recursive: true });
      },
    }));
}

function pinsIn(folder: string, isOurs = false): Leak[] {
  return namesIn(folder).flatMap((name) => {
    const path = join(folder, name);
    const isPinOfOurs = isOurs || name.includes(OURS);
    const below = pinsIn(path, isPinOfOurs);
    if (below.length > 0 || !isPinOfOurs) return below;
    const remove = () => {
      rmSync(path, { recursive: true });
    };
    return [{ kind: 'a pin', name: path, remove }];
  });
}

/** A cgroup with as many links as an empty folder has none below it: stat(2) is cheaper than to look. */
function cgroupsIn(folder: string): Leak[] {
  if ((statSync(folder, { throwIfNoEntry: false })?.nlink ?? 0) <= 2) return [];
  return namesIn(folder, true).flatMap((name) => {
    const path = join(folder, name);
    const below = cgroupsIn(path);
    if (!name.includes(OURS)) return below;
    const remove = () => {
      thaw(path);
      rmdirSync(path);
    };
    return [...below, { kind: 'a cgroup', name: path, remove }];
  });
}

/** What is frozen cannot be killed. */
function thaw(cgroup: string): void {
  try {
    writeFileSync(join(cgroup, 'freezer.state'), 'THAWED');
  } catch {
    // not that of a freezer
  }
}

/** Empty if it does not exist, is no folder, or is not ours to look at. */
function namesIn(folder: string, onlyFolders = false): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !onlyFolders || entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
