import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { itAsRootIf } from './privilege';
import { until } from './wait';

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

/** A cgroup with so much memory. At its end, it waits for what is in it. Needs {@link itAsRootWith}. */
export class MemoryCgroup implements AsyncDisposable {
  readonly path: string;

  constructor(bytes: number) {
    const base = folderOfController('memory') ?? '';
    const limit = base.endsWith('memory') ? 'memory.limit_in_bytes' : 'memory.max';
    this.path = join(base, `exitwatch-${process.pid}-${Math.random().toString(36).slice(2)}`);
    mkdirSync(this.path);
    writeFileSync(join(this.path, limit), String(bytes));
  }

  add(pid: number): void {
    writeFileSync(join(this.path, 'cgroup.procs'), String(pid));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await until(`${this.path} to be empty`, () => {
      try {
        rmdirSync(this.path);
        return true;
      } catch {
        return false;
      }
    });
  }
}
