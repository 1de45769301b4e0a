import { readdirSync, readFileSync } from 'node:fs';

import { processTable } from '../../identity/platform-table.js';
import { identify } from '../../identity/process-identity.js';

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

/** Facts about the processes that live, those that begin later as well, if they live for a second. */
export class KnownProcesses {
  readonly #facts = new Map<string, Facts>();
  /** The id of who has a pid, and whether it was there at the last look. */
  readonly #ids = new Map<number, { id: string; isThere: boolean }>();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#look();
    this.#timer = setInterval(() => {
      this.#look();
    }, EVERY_MS).unref();
  }

  /** `undefined`: it was never seen. */
  of(id: string): Facts | undefined {
    return this.#facts.get(id);
  }

  /** It has ended. */
  forget(id: string, pid: number): void {
    this.#facts.delete(id);
    if (this.#ids.get(pid)?.id === id) this.#ids.delete(pid);
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
    for (const [pid, seen] of this.#ids) {
      if (pids.has(pid)) continue;
      // Its event may be on its way: until the next look.
      if (seen.isThere) this.#ids.set(pid, { id: seen.id, isThere: false });
      else this.forget(seen.id, pid);
    }
  }

  #learn(pid: number): void {
    try {
      const known = this.#ids.get(pid);
      const id = known?.isThere === true ? known.id : identify(pid)?.id;
      if (id === undefined) return;
      const facts = factsOf(pid);
      if (facts === null) return;
      this.#facts.set(id, facts);
      this.#ids.set(pid, { id, isThere: true });
    } catch {
      // It has ended, or is hidden.
    }
  }
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
