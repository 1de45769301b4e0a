import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { itAsRootIf } from './privilege';

/** The mount point of cgroup v2, alone or beside v1. */
export const CGROUP2 = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find(
  (path) => existsSync(join(path, 'cgroup.procs')) && existsSync(join(path, 'cgroup.controllers')),
);

/** Declares a test that makes a cgroup of its own. */
export const itWithCgroup = itAsRootIf(CGROUP2 !== undefined, 'needs cgroup v2');

/** The path of a cgroup that does not exist yet. */
export function cgroupName(): string {
  return join(
    CGROUP2 ?? '',
    `exitwatch-test-${process.pid}-${Math.random().toString(36).slice(2)}`,
  );
}
