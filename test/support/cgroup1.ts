import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { itAsRootIf } from './privilege';
import { until } from './wait';

const folderOf = (controller: 'freezer' | 'pids') => `/sys/fs/cgroup/${controller}`;
const has = (controller: 'freezer' | 'pids') =>
  existsSync(join(folderOf(controller), 'cgroup.procs')) &&
  existsSync(join(folderOf(controller), 'cgroup.clone_children'));

export const HAS_PIDS = process.getuid?.() === 0 && has('pids');
export const itWithFreezer = itAsRootIf(has('freezer'), 'needs the freezer of cgroup v1');
export const itWithPids = itAsRootIf(has('pids'), 'needs the pids controller of cgroup v1');

/** A cgroup v1 of a test's own. What is in it goes back to the root at the end. */
class Cgroup1 implements AsyncDisposable {
  readonly path: string;
  readonly #root: string;

  constructor(controller: 'freezer' | 'pids') {
    this.#root = folderOf(controller);
    this.path = join(this.#root, `exitwatch-${process.pid}-${Math.random().toString(36).slice(2)}`);
    mkdirSync(this.path);
  }

  add(pid: number): void {
    this.write('cgroup.procs', String(pid));
  }

  write(file: string, value: string): void {
    writeFileSync(join(this.path, file), value);
  }

  read(file: string): string {
    return readFileSync(join(this.path, file), 'latin1').trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await until('the cgroup to be empty', () => {
      for (const pid of this.read('cgroup.procs').split('\n').filter(Boolean)) {
        try {
          writeFileSync(join(this.#root, 'cgroup.procs'), pid);
        } catch {
          // It has just ended.
        }
      }
      try {
        rmdirSync(this.path);
        return true;
      } catch {
        return false;
      }
    });
  }
}

/** Processes that no signal reaches, not even SIGKILL, until they are thawed. */
export class Frozen extends Cgroup1 {
  static async of(pid: number): Promise<Frozen> {
    const frozen = new Frozen('freezer');
    frozen.add(pid);
    frozen.write('freezer.state', 'FROZEN');
    await until('it to be frozen', () => frozen.read('freezer.state') === 'FROZEN');
    return frozen;
  }

  thaw(): void {
    this.write('freezer.state', 'THAWED');
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.thaw();
    await super[Symbol.asyncDispose]();
  }
}

/** Has a process start no other one: its fork(2) fails with EAGAIN, whoever it is. */
export class Childless extends Cgroup1 {
  static of(pid: number): Childless {
    const childless = new Childless('pids');
    childless.add(pid);
    childless.write('pids.max', '1');
    return childless;
  }

  allow(): void {
    this.write('pids.max', 'max');
  }
}
