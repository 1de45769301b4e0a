import { readdirSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

import { reasonOf } from '../common/errors.js';

import { NoRecorder } from './no-recorder.js';

/** BPF_FS_MAGIC of <linux/magic.h>. */
const BPF_FS_MAGIC = 0xcafe4a11;

/** @throws NoRecorder unless pins survive there for as long as the host runs */
export function checkFileSystem(root: string): void {
  const folder = existingFolder(root);
  let type: number;
  try {
    ({ type } = statfsSync(folder));
  } catch (error) {
    throw noFileSystem(`${folder} cannot be looked at: ${reasonOf(error)}`);
  }
  if (type >>> 0 !== BPF_FS_MAGIC) throw noFileSystem(`no BPF file system is mounted at ${folder}`);
  if (isPrivateMount(folder)) {
    throw noFileSystem(
      `the BPF file system at ${folder} is mounted in this service's mount namespace only, and is gone when the service stops`,
    );
  }
}

/** The folder, or the one above it that exists. */
function existingFolder(path: string): string {
  for (let folder = path; ; folder = join(folder, '..')) {
    try {
      readdirSync(folder);
      return folder;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT' || folder === '/') return folder;
    }
  }
}

function noFileSystem(detail: string): NoRecorder {
  return new NoRecorder({
    code: 'no-bpffs',
    detail,
    remedy: 'mount -t bpf bpf /sys/fs/bpf, as systemd does, in the mount namespace of the host',
  });
}

/** Whether init cannot see this mount. `false` if that is unknown. */
function isPrivateMount(folder: string): boolean {
  const own = deviceOfMount('/proc/self/mountinfo', folder);
  if (own === null) return false;
  try {
    return !readFileSync('/proc/1/mountinfo', 'utf8')
      .split('\n')
      .some((line) => line.split(' ')[2] === own);
  } catch {
    return false;
  }
}

/** "major:minor" of the mount that has the folder (proc_pid_mountinfo(5)). */
function deviceOfMount(mountinfo: string, folder: string): string | null {
  let best: { device: string; length: number } | null = null;
  for (const line of readFileSync(mountinfo, 'utf8').split('\n')) {
    const [, , device, , point] = line.split(' ');
    if (device === undefined || point === undefined) continue;
    const isAbove = folder === point || folder.startsWith(point === '/' ? '/' : `${point}/`);
    // Of two mounts on one folder, the later one is seen.
    if (isAbove && point.length >= (best?.length ?? 0)) best = { device, length: point.length };
  }
  return best?.device ?? null;
}
