import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The share of the free capacity that other programs keep. */
const SHARE = 0.5;

/** The most memory that a small program takes, including the kernel's own for it. */
const BYTES_PER_PROCESS = 128 * 1024;

/** How many of `wanted` processes a test may start without starving other programs. */
export function roomForProcesses(wanted: number): number {
  return least(wanted, [...cgroupLimits(), userLimit(), machineLimit(), memoryLimit()]);
}

/** How many of `wanted` descriptors this process may open. */
export function roomForDescriptors(wanted: number): number {
  const open = readdirSync('/proc/self/fd').length;
  return least(wanted, [{ most: softLimit('Max open files'), taken: open }]);
}

interface Limit {
  most: number;
  taken: number;
}

function least(wanted: number, limits: readonly Limit[]): number {
  const free = limits.map(({ most, taken }) => Math.floor((most - taken) * SHARE));
  return Math.max(1, Math.min(wanted, ...free));
}

/** pids.max of this process's cgroup and of each ancestor. */
function* cgroupLimits(): Generator<Limit> {
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const root = controllers === '' ? unifiedRoot() : '/sys/fs/cgroup/pids';
    if (!['', 'pids'].includes(controllers) || path === '') continue;
    for (let folder = path; ; folder = dirname(folder)) {
      const most = numberIn(join(root, folder, 'pids.max'));
      const taken = numberIn(join(root, folder, 'pids.current'));
      if (most !== null && taken !== null) yield { most, taken };
      if (folder === '/') break;
    }
  }
}

function unifiedRoot(): string {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  return mounts.find((line) => line.includes(' cgroup2 '))?.split(' ')[1] ?? '/sys/fs/cgroup';
}

/** RLIMIT_NPROC, which applies to processes without privileges, and counts threads. */
function userLimit(): Limit {
  if (process.getuid?.() === 0) return { most: Infinity, taken: 0 };
  let taken = 0;
  for (const pid of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const status = textOf(`/proc/${pid}/status`) ?? '';
    const [, uid] = /^Uid:\t(\d+)/m.exec(status) ?? [];
    if (Number(uid) === process.getuid?.()) {
      taken += Number(/^Threads:\t(\d+)/m.exec(status)?.[1] ?? 1);
    }
  }
  return { most: softLimit('Max processes'), taken };
}

function machineLimit(): Limit {
  const taken = Number(/ \d+\/(\d+) /.exec(textOf('/proc/loadavg') ?? '')?.[1] ?? 0);
  const most = ['pid_max', 'threads-max'].map((name) => numberIn(`/proc/sys/kernel/${name}`));
  return { most: Math.min(...most.map((each) => each ?? Infinity)), taken };
}

function memoryLimit(): Limit {
  const kilobytes = /^MemAvailable: +(\d+)/m.exec(textOf('/proc/meminfo') ?? '')?.[1];
  const bytes = kilobytes === undefined ? Infinity : 1024 * Number(kilobytes);
  return { most: bytes / BYTES_PER_PROCESS, taken: 0 };
}

function softLimit(name: string): number {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const [, value] = new RegExp(`^${name} +(\\S+)`, 'm').exec(limits) ?? [];
  return value === undefined || value === 'unlimited' ? Infinity : Number(value);
}

/** `null`: the file does not exist or contains no number. */
function numberIn(path: string): number | null {
  const text = textOf(path)?.trim() ?? '';
  return /^\d+$/.test(text) ? Number(text) : null;
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
