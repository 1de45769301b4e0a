import { existsSync, readFileSync } from 'node:fs';

import { itAsRootIf } from './privilege';

/** The folder for cgroups with this controller; `null`: no hierarchy here has it. */
export function folderOfController(name: 'memory' | 'pids'): string | null {
  const v1 = `/sys/fs/cgroup/${name}`;
  if (existsSync(`${v1}/cgroup.procs`)) return v1;
  const enabled = '/sys/fs/cgroup/cgroup.subtree_control';
  if (!existsSync(enabled)) return null;
  return readFileSync(enabled, 'utf8').split(/\s+/).includes(name) ? '/sys/fs/cgroup' : null;
}

/** Needs root and this cgroup controller. */
export function itAsRootWith(controller: 'memory' | 'pids'): jest.It {
  const isThere = folderOfController(controller) !== null;
  return itAsRootIf(isThere, `needs the ${controller} controller of cgroups`);
}
