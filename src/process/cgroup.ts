import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A cgroup of the v2 hierarchy, with all that are below it. */
export class Cgroup {
  /** As /proc/PID/cgroup has it. */
  readonly path: string;
  readonly #directory: string;

  constructor(path: string, directory: string) {
    this.path = path;
    this.#directory = directory;
  }

  /** The cgroup that a process is in; `null`: the root, or there is none that can be read. */
  static of(pid: number): Cgroup | null {
    const path = cgroupPath(pid);
    const mount = mountPoint();
    if (path === null || mount === null || path === '/') return null;
    const cgroup = new Cgroup(path, join(mount, path));
    return cgroup.processes() === null ? null : cgroup;
  }

  /** Whether a process is in it now. */
  has(pid: number): boolean {
    const path = cgroupPath(pid);
    return path === this.path || path?.startsWith(`${this.path}/`) === true;
  }

  /** All processes in it, 0 for each that is outside of our pid namespace; `null`: it cannot be read. */
  processes(): number[] | null {
    try {
      return processesBelow(this.#directory);
    } catch (error) {
      return isRemoved(error) ? [] : null;
    }
  }

  /** Whether nobody lives in it any more; a process leaves it a moment before its parent can see it dead. */
  isEmpty(): boolean {
    try {
      return /^populated 0$/m.test(readFileSync(join(this.#directory, 'cgroup.events'), 'latin1'));
    } catch (error) {
      return isRemoved(error);
    }
  }

  /** Ends all in it by SIGKILL, those that are just being forked, too; since Linux 5.14. */
  kill(): boolean {
    try {
      writeFileSync(join(this.#directory, 'cgroup.kill'), '1', { flag: 'r+' });
      return true;
    } catch {
      return false;
    }
  }
}

/** It takes that nobody is in it. */
function isRemoved(error: unknown): boolean {
  return ['ENOENT', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function processesBelow(directory: string): number[] {
  const text = readFileSync(join(directory, 'cgroup.procs'), 'latin1');
  const found = text.split('\n').filter((line) => line !== '');
  const children = readdirSync(directory, { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  return [...found.map(Number), ...children.flatMap(({ name }) => childProcesses(directory, name))];
}

function childProcesses(directory: string, name: string): number[] {
  try {
    return processesBelow(join(directory, name));
  } catch (error) {
    if (isRemoved(error)) return [];
    throw error;
  }
}

/** Relative to the root of our cgroup namespace; `null`: outside of it, or not to be read. */
function cgroupPath(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
    const path = /^0::(\/.*)$/m.exec(text)?.[1] ?? null;
    return path === null || /(^|\/)\.\.(\/|$)| \(deleted\)$/.test(path) ? null : path;
  } catch {
    return null; // it has ended meanwhile
  }
}

/** Where the whole v2 hierarchy of our namespace is mounted; alone, or beside those of v1. */
function mountPoint(): string | null {
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [mount = '', type = ''] = line.split(' - ');
    const [, , , root, point] = mount.split(' ');
    if (type.startsWith('cgroup2 ') && root === '/' && point !== undefined) {
      return point.replace(/\\([0-7]{3})/g, (_, octal: string) =>
        String.fromCharCode(parseInt(octal, 8)),
      );
    }
  }
  return null;
}
