import { ChildProcess } from 'node:child_process';
import { Server, Socket } from 'node:net';

import type { Leak } from './leak';

/** Undocumented, but the only way to the objects; Jest uses it, too. */
const { _getActiveHandles: activeHandles } = process as unknown as {
  _getActiveHandles: () => object[];
};

/** What keeps Node.js running. */
export interface Handles {
  objects: WeakSet<object>;
  /** How many there are of each type: of requests there is no object. */
  counts: ReadonlyMap<string, number>;
}

export function ownHandles(): Handles {
  return { objects: new WeakSet(activeHandles.call(process)), counts: countHandles() };
}

function countHandles(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const type of process.getActiveResourcesInfo()) {
    counts.set(type, (counts.get(type) ?? 0) + 1);
  }
  return counts;
}

/** What keeps Node.js running that did not do so before. */
export function leftHandles(before: Handles): Leak[] {
  const objects = activeHandles.call(process).filter((each) => !before.objects.has(each));
  const described = objects.map((object) => ({
    kind: 'a handle',
    name: nameOf(object),
    remove: () => {
      close(object);
    },
  }));
  const others = [...countHandles()].flatMap(([type, count]) => {
    const more = count - (before.counts.get(type) ?? 0);
    if (more <= 0 || hasObject(type)) return [];
    return [{ kind: 'a handle', name: more === 1 ? type : `${more} of type ${type}` }];
  });
  return [...described, ...others];
}

/** `PipeWrap`, for example. Timers have a look of their own: timers.ts. */
function hasObject(type: string): boolean {
  return type.endsWith('Wrap') || ['MessagePort', 'Timeout', 'Immediate'].includes(type);
}

function nameOf(object: object): string {
  if (object instanceof ChildProcess) {
    return `the child process ${object.pid} ${object.spawnargs.join(' ')}`;
  }
  if (object instanceof Server) return `a server at ${JSON.stringify(object.address())}`;
  if (object instanceof Socket) {
    const { remoteAddress, remotePort } = object;
    return remoteAddress === undefined ? 'a socket or pipe' : `${remoteAddress}:${remotePort}`;
  }
  return object.constructor.name;
}

function close(handle: object): void {
  if (handle instanceof Socket) {
    handle.destroy();
    return;
  }
  const { close, unref } = handle as { close?: () => void; unref?: () => void };
  (close ?? unref)?.call(handle);
}
