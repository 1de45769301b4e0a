import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A cgroup v2 with all cgroups below it. */
export class Cgroup {
  /** As in /proc/PID/cgroup. */
  readonly path: string;
  readonly #directory: string;

  constructor(path: string, directory: string) {
    this.path = path;
    this.#directory = directory;
  }

  /** The cgroup of a process; `null` if it is the root, or cannot be read. */
  static of(pid: number): Cgroup | null {
    const path = cgroupPath(pid);
    const mount = cgroupMount();
    if (path === null || mount === null || path === '/') return null;
    const cgroup = new Cgroup(path, join(mount, path));
    return cgroup.processes() === null ? null : cgroup;
  }

  /** Whether a process is in it now. */
  has(pid: number): boolean {
    const path = cgroupPath(pid);
    return path === this.path || path?.startsWith(`${this.path}/`) === true;
  }

  /**
   * All processes in it; 0 for each one outside of our pid namespace. `null` if it cannot be read.
   */
  processes(): number[] | null {
    try {
      return processesBelow(this.#directory);
    } catch (error) {
      return isRemoved(error) ? [] : null;
    }
  }

  /**
   * Whether no process is left in it. A process leaves it shortly before its parent can see it
   * dead.
   */
  isEmpty(): boolean {
    try {
      return /^populated 0$/m.test(readFileSync(join(this.#directory, 'cgroup.events'), 'latin1'));
    } catch (error) {
      return isRemoved(error);
    }
  }

  /** Sends SIGKILL to all processes in it, even those being forked. Requires Linux 5.14. */
  kill(): boolean {
    try {
      writeFileSync(join(this.#directory, 'cgroup.kill'), '1', { flag: 'r+' });
      return true;
    } catch {
      return false;
    }
  }
}

/** A cgroup can only be removed when it is empty. */
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

/** Relative to the root of our cgroup namespace; `null` if it is outside, or cannot be read. */
export function cgroupPath(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
    const path = /^0::(\/.*)$/m.exec(text)?.[1] ?? null;
    return path === null || /(^|\/)\.\.(\/|$)| \(deleted\)$/.test(path) ? null : path;
  } catch {
    return null; // it has exited in the meantime
  }
}

/** Where the whole v2 hierarchy of our namespace is mounted, alone or next to v1. */
export function cgroupMount(): string | null {
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
