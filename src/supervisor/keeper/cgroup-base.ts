import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';

import { keeperBinary } from './keeper-process.js';
import { cgroupMount, cgroupPath } from '../../process/cgroup.js';

/**
 * The folder for the cgroups of runs; `null` if none may be created here. On a host with systemd, a
 * cgroup is somebody else's unless it was delegated to its service, which systemd marks. In a container
 * the root of the namespace is its own.
 */
export function cgroupBase(stateDir: string): string | null {
  const path = cgroupPath(process.pid);
  const mount = cgroupMount();
  if (path === null || mount === null) return null;
  const own = join(mount, path);
  if (!isWritable(own)) return null;
  const isOwn = path === '/' ? !existsSync('/run/systemd/system') : isDelegated(own);
  return isOwn ? join(own, folderName(stateDir)) : null;
}

/** Keepers of different directories may use the same ids. */
function folderName(stateDir: string): string {
  const hash = createHash('sha256').update(realpathSync(stateDir)).digest('hex');
  return `exitwatch-${hash.slice(0, 12)}`;
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    accessSync(join(folder, 'cgroup.procs'), constants.W_OK);
    readFileSync(join(folder, 'cgroup.procs'), 'latin1');
    return true;
  } catch {
    return false;
  }
}

/** systemd marks what it has delegated: `Delegate=` in systemd.resource-control(5). */
function isDelegated(folder: string): boolean {
  try {
    execFileSync(keeperBinary(), ['is-delegated', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
