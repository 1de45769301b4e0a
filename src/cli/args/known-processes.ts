import { readdirSync, readFileSync } from 'node:fs';

import type { ExitEvent } from '../../events/exit-event.js';
import { processTable } from '../../identity/platform-table.js';
import { identify, startOf } from '../../identity/process-identity.js';

import { executableName } from './process-list.js';

/** What an event does not always tell, as it was when the process was last looked at. */
export interface Facts {
  /** The executable's file name. */
  executable: string | null;
  parentPid: number | null;
  uid: number | null;
  /** Its path in the v2 hierarchy. */
  cgroup: string | null;
}

const EVERY_MS = 1000;

/** How far two readings of one start may be apart: a clock tick of 10 ms, and the rounding of each. */
const START_TOLERANCE_MS = 20;

interface KnownProcess {
  id: string;
  startedAt: Date | null;
  facts: Facts;
  /** It was there at the last look. */
  isThere: boolean;
}

/** Facts about the processes that live, those that begin later as well, if they live for a second. */
export class KnownProcesses {
  readonly #byPid = new Map<number, KnownProcess>();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#look();
    this.#timer = setInterval(() => {
      this.#look();
    }, EVERY_MS).unref();
  }

  /** Of a living process; `undefined`: it was never seen. */
  of({ id, pid }: Pick<ExitEvent, 'id' | 'pid'>): Facts | undefined {
    const known = this.#byPid.get(pid);
    return known?.id === id ? known.facts : undefined;
  }

  /** Of a process that has ended, and will not be asked for again; `undefined`: it was never seen. */
  take(event: ExitEvent): Facts | undefined {
    const known = this.#byPid.get(event.pid);
    if (known === undefined || !isOf(event, known)) return undefined;
    this.#byPid.delete(event.pid);
    return known.facts;
  }

  /** Ends were lost: who has a pid now need not be who had it. */
  lookAnew(): void {
    this.#byPid.clear();
    this.#look();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    if (process.platform !== 'linux') return;
    const pids = new Set<number>();
    for (const entry of readdirSync('/proc')) {
      const pid = Number(entry);
      if (!Number.isInteger(pid)) continue;
      pids.add(pid);
      this.#learn(pid);
    }
    for (const [pid, known] of this.#byPid) {
      if (pids.has(pid)) continue;
      // Its event may be on its way: until the next look.
      if (known.isThere) known.isThere = false;
      else this.#byPid.delete(pid);
    }
  }

  #learn(pid: number): void {
    try {
      const facts = factsOf(pid);
      if (facts === null) return;
      const known = this.#byPid.get(pid);
      if (known?.isThere === true) {
        known.facts = facts;
        return;
      }
      const identity = identify(pid);
      if (identity === null) return;
      const startedAt = startOf(identity);
      this.#byPid.set(pid, { id: identity.id, startedAt, facts, isThere: true });
    } catch {
      // It has ended, or is hidden.
    }
  }
}

/**
 * Whether it was this one that ended. The event of a process that was reaped before the kernel could be
 * asked about it has an id of its own, and perhaps no start: then it is the one that had the pid, as all
 * earlier ends of that pid have been told.
 */
function isOf({ id, startedAt, exitedAt, uncertaintyMs }: ExitEvent, known: KnownProcess): boolean {
  if (id === known.id) return true;
  if (known.startedAt === null) return false;
  const start = known.startedAt.getTime();
  if (startedAt !== null) return Math.abs(startedAt.getTime() - start) <= START_TOLERANCE_MS;
  return start <= exitedAt.getTime() + uncertaintyMs + START_TOLERANCE_MS;
}

/** Of who has this pid now; `null`: nobody alive. */
export function factsOf(pid: number): Facts | null {
  const lookup = processTable().lookNow(pid);
  if (lookup === null || lookup === 'unknown' || lookup.isDead || lookup.isKernelThread)
    return null;
  const { parentPid, uid } = lookup;
  return {
    parentPid,
    uid,
    executable: tried(() => executableName(String(pid))),
    cgroup: cgroupOf(pid),
  };
}

function cgroupOf(pid: number): string | null {
  const text = tried(() => readFileSync(`/proc/${pid}/cgroup`, 'utf8'));
  return /^0::(\/.*)$/m.exec(text ?? '')?.[1] ?? null;
}

function tried<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}
