import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { keeperBinary } from './keeper-process.js';
import { cgroupMount, cgroupPath } from '../../process/cgroup.js';

/** The name of our folder; each run gets one below it. */
const NAME = 'exitwatch.keeper';

/**
 * The folder for the cgroups of runs; `null` if none may be created here. On a host with systemd, a
 * cgroup is somebody else's unless it was delegated to its service, which systemd marks. In a container
 * the root of the namespace is its own.
 */
export function cgroupBase(): string | null {
  const path = cgroupPath(process.pid);
  const mount = cgroupMount();
  if (path === null || mount === null) return null;
  const own = join(mount, path);
  if (!isWritable(own)) return null;
  const isOwn = path === '/' ? !existsSync('/run/systemd/system') : isDelegated(own);
  return isOwn ? join(own, NAME) : null;
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
