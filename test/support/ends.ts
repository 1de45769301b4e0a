import type { ChildProcess } from 'node:child_process';

import type { ExitEvent, ExitWatch } from '../../src';
import { isAlive } from '../../src/process';
import type { VmVerdict, VmWatch } from '../../src/vm';

import { arrives, until } from './wait';

export function exitOf({ identity, exited }: ExitWatch): Promise<ExitEvent> {
  return arrives(`the exit of process ${identity.pid}`, exited);
}

export function exitsOf(watches: readonly ExitWatch[]): Promise<ExitEvent[]> {
  const left = new Set(watches);
  const exits = watches.map(async (watch) => {
    const event = await watch.exited;
    left.delete(watch);
    return event;
  });
  const missing = () => {
    const pids = [...left].map(({ identity }) => identity.pid);
    return `${pids.length} are missing: ${pids.slice(0, 20).join(' ')}`;
  };
  return arrives(`the exits of ${watches.length} processes`, Promise.all(exits), missing);
}

export function stopOf({ name, stopped }: VmWatch): Promise<VmVerdict> {
  return arrives(`the stop of ${name}`, stopped);
}

/** The exit code of a child of this process, once it has ended. */
export function endOf(child: ChildProcess): Promise<number | null> {
  const { exitCode, signalCode, pid = 0, spawnargs } = child;
  if (exitCode !== null || signalCode !== null) return Promise.resolve(exitCode);
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  return arrives(`the end of ${pid}: ${spawnargs.join(' ')}`, ended);
}

/** Resolves when the process is reaped, or a zombie. */
export async function dead(pid: number): Promise<void> {
  await until(`the death of process ${pid}`, () => isAlive(pid) === 'dead');
}
