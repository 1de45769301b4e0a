import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

import { kill } from '../kill';

import type { Leak } from './leak';
/** What the environment of processes contains, and a folder that only they know. */
interface Mark {
  name: string;
  folder: string;
}

interface Process {
  pid: number;
  parent: number;
  commandLine: string;
  isMarked: boolean;
}

const MOST_CHARACTERS = 200;

export function allPids(): Set<number> {
  return new Set(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number),
  );
}

/**
 * The processes of a test file, except for those that were there `before`: our children, what has the
 * mark in its environment or the folder in its command line or is in that folder, and all children of
 * these. A zombie is its parent's affair.
 *
 * @param programs a folder: what runs a program of it is also meant
 */
export function leftProcesses(mark: Mark, before: ReadonlySet<number>, programs?: string): Leak[] {
  const others = [...allPids()].filter((pid) => !before.has(pid));
  const processes = others.flatMap((pid) => processOf(pid, mark, programs));
  const ours = new Set([process.pid]);
  const left: Process[] = [];
  for (let found = -1; found !== left.length;) {
    found = left.length;
    for (const each of processes) {
      if (ours.has(each.pid) || !(each.isMarked || ours.has(each.parent))) continue;
      ours.add(each.pid);
      left.push(each);
    }
  }
  return left.map(({ pid, commandLine }) => ({
    kind: 'a process',
    name: `${pid} ${commandLine}`,
    remove: () => {
      kill(pid, 'SIGKILL');
    },
  }));
}

/** Whether another Jest, or another worker of ours, may be running other tests. */
export function hasOtherTests(): boolean {
  const ours = [process.pid, ...ancestorsOf(process.pid)];
  return [...allPids()].some(
    (pid) => !ours.includes(pid) && textOf(`/proc/${pid}/cmdline`).includes('jest'),
  );
}

function ancestorsOf(pid: number): number[] {
  const [, parent] = /^\d+ \(.*\) \S (\d+)/s.exec(textOf(`/proc/${pid}/stat`)) ?? [];
  return parent === undefined ? [] : [Number(parent), ...ancestorsOf(Number(parent))];
}

function processOf(pid: number, mark: Mark, programs: string | undefined): Process[] {
  const folder = `/proc/${pid}`;
  const stat = textOf(`${folder}/stat`);
  const [, name = '', state = 'X', parent] = /^\d+ \((.*)\) (\S) (\d+)/s.exec(stat) ?? [];
  if (state === 'Z' || state === 'X') return [];
  const words = textOf(`${folder}/cmdline`);
  const commandLine = words.replaceAll('\0', ' ').trim().replaceAll(/\s+/g, ' ');
  return [
    {
      pid,
      parent: Number(parent),
      commandLine: commandLine === '' ? `(${name})` : commandLine.slice(0, MOST_CHARACTERS),
      isMarked:
        textOf(`${folder}/environ`).includes(mark.name) ||
        words.includes(mark.folder) ||
        linkOf(`${folder}/cwd`).startsWith(mark.folder) ||
        (programs !== undefined && linkOf(`${folder}/exe`).startsWith(programs)),
    },
  ];
}

/** Empty if it has ended, or is not ours to look at. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
