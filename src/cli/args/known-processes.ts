import { readFileSync } from 'node:fs';

import type { ExitEvent } from '../../events/exit-event.js';
import { pids } from '../../identity/pids.js';
import { processTable } from '../../identity/platform-table.js';
import {
  bootPrefix,
  identify,
  identityId,
  isIdOfEnd,
  type ProcessIdentity,
} from '../../identity/process-identity.js';
import type { ProcessRow } from '../../identity/process-table.js';

import { executableName } from './process-list.js';

/** What an event may lack, as it was when the process was last read. */
export interface Facts {
  /** The executable's file name. */
  executable: string | null;
  parentPid: number | null;
  uid: number | null;
  /** Its cgroup v2 path. */
  cgroup: string | null;
}

const EVERY_MS = 1000;

interface KnownProcess {
  identity: ProcessIdentity;
  /** A time at which it had the pid. */
  seenAtMs: number;
  facts: Facts;
  /** It existed at the last look. */
  isThere: boolean;
}

/** Facts about all living processes, including later ones that live for at least a second. */
export class KnownProcesses {
  readonly #byPid = new Map<number, KnownProcess>();
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.goOn();
  }

  /** Looks now, and each second, even after {@link close}. */
  goOn(): void {
    this.#look();
    this.#timer ??= setInterval(() => {
      this.#look();
    }, EVERY_MS).unref();
  }

  /** For a living process; `undefined`: it was never seen. */
  of({ id, pid }: Pick<ExitEvent, 'id' | 'pid'>): Facts | undefined {
    const known = this.#byPid.get(pid);
    return known?.identity.id === id ? known.facts : undefined;
  }

  /** For a process that has exited; removes the facts. `undefined`: it was never seen. */
  take(event: ExitEvent): Facts | undefined {
    const known = this.#byPid.get(event.pid);
    if (known === undefined || !isOf(event, known)) return undefined;
    this.#byPid.delete(event.pid);
    return known.facts;
  }

  /** Exits were lost: pids may belong to other processes now. */
  lookAnew(): void {
    this.#byPid.clear();
    this.#look();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    if (process.platform !== 'linux') return;
    const there = new Set(pids());
    for (const pid of there) this.#learn(pid);
    for (const [pid, known] of this.#byPid) {
      if (there.has(pid)) continue;
      // Its event may still arrive, so keep it until the next look.
      if (known.isThere) known.isThere = false;
      else this.#byPid.delete(pid);
    }
  }

  #learn(pid: number): void {
    try {
      const seenAtMs = Date.now();
      const row = rowOf(pid);
      if (row === null) return;
      const facts = factsIn(row);
      const known = this.#byPid.get(pid);
      if (known?.isThere === true && known.identity.startTicks === row.startTicks) {
        known.facts = facts;
        return;
      }
      const identity = identify(pid);
      if (identity?.startTicks !== row.startTicks) return; // the pid was reused
      this.#byPid.set(pid, { identity, seenAtMs, facts, isThere: true });
    } catch {
      // It has exited, or is hidden.
    }
  }
}

/**
 * Whether the event is about this process. If the process was reaped before the kernel could be
 * asked about it, its id is made from its start, or only from its exit. In the latter case it is
 * the process that was seen with the pid before that exit, because exits of the same pid arrive in
 * order.
 */
function isOf(event: ExitEvent, { identity, seenAtMs }: KnownProcess): boolean {
  const { id, exitedAt, uncertaintyMs } = event;
  const { pid, startTicks, bootId, pidNamespace } = identity;
  const byStart = identityId(bootPrefix(bootId, pidNamespace), pid, null, startTicks, 0);
  if (id === identity.id || id === byStart) return true;
  return isIdOfEnd(id) && seenAtMs <= exitedAt.getTime() - uncertaintyMs;
}

/** For the process with this pid; `null`: none is alive. */
export function factsOf(pid: number): Facts | null {
  const row = rowOf(pid);
  return row === null ? null : factsIn(row);
}

function rowOf(pid: number): ProcessRow | null {
  const lookup = processTable().lookNow(pid);
  if (lookup === null || lookup === 'unknown' || lookup.isDead || lookup.isKernelThread)
    return null;
  return lookup;
}

function factsIn({ pid, parentPid, uid }: ProcessRow): Facts {
  const executable = tried(() => executableName(String(pid)));
  return { parentPid, uid, executable, cgroup: cgroupOf(pid) };
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
