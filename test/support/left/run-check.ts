import { execFileSync } from 'node:child_process';

import { openObjects } from '../bpf-objects';
import { program } from '../programs';

import { inWords, type Leak, leftAfter } from './leak';
import { inPlaces } from './places';
import { allPids, leftProcesses } from './processes';
import { Run } from './run';

const PATIENCE_MS = 5000;

let pidsBefore = new Set<number>();

/** Notes what is there before a run of Jest. */
export function beginRun(): void {
  pidsBefore = allPids();
  Run.begin().note(null, [...inPlaces(), ...bpfObjects()]);
}

/**
 * Throws an error that says what the run has left. That includes what a file's own check cannot see:
 * what files that ran side by side may have left, BPF objects that nobody has open any more, and
 * processes that ended up without a mark. If other runs are under way, the last one to end looks.
 */
export async function endRun(): Promise<void> {
  const run = Run.current;
  if (run === null) return;
  run.end();
  if (!run.isAlone) return;
  const leaks = await leftAfter(PATIENCE_MS, () => [
    ...leftProcesses(run, pidsBefore, program('')),
    ...run.sinceBegin(inPlaces()),
    ...withoutOwner(run.sinceBegin(bpfObjects())),
  ]);
  if (leaks.length === 0) return;
  const error = new Error(inWords('this run', leaks));
  error.stack = error.message; // it leads only to Jest
  throw error;
}

/** The BPF objects of exitwatch on this host. Only root can see them. */
function bpfObjects(): Leak[] {
  let text: string;
  try {
    text = execFileSync(program('bpf-objects'), ['exitwatch'], { encoding: 'utf8' });
  } catch {
    return [];
  }
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((name) => ({ kind: 'a BPF object', name }));
}

/** What a process has open ends with it: it is that process which is left, or it is not ours. */
function withoutOwner(objects: Leak[]): Leak[] {
  if (objects.length === 0) return [];
  const open = new Set([...allPids()].flatMap(openIn));
  return objects.filter(({ name }) => !open.has(name.split(' ').slice(0, 2).join(' ')));
}

function openIn(pid: number): string[] {
  try {
    return openObjects(pid);
  } catch {
    return []; // it has ended
  }
}
