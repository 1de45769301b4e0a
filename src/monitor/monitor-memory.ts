import { readFileSync } from 'node:fs';

import type { ExitEvent, Gap } from '../events/exit-event.js';
import type { SourceReady } from '../events/source-ready.js';
import { unknownExit } from '../events/unknown-exit.js';
import { bootId } from '../identity/boot-id.js';
import { isSameProcess, lookUp, type ProcessIdentity } from '../identity/process-identity.js';
import { COMPARE_EACH_MS } from '../memory/exit-ring.js';
import type { MemoryOptions } from '../memory/keeping.js';
import { Memory } from '../memory/memory.js';
import type { StoredWatch } from '../memory/watch-log.js';
import type { ExitSource } from '../sources/exit-source.js';

import { type ExitWatch, PendingWatch } from './exit-watch.js';
import type { Ready } from './ready.js';
import type { WatchRegistry } from './watch-registry.js';
import { armWatch, goneBeforeWatch, type WatchStore } from './watch-target.js';

/** How often to look at the recorder beside the live stream, and without one, or before it is compared. */
const BESIDE_MS = 1000;
const ALONE_MS = COMPARE_EACH_MS;

/** What a monitor does for its memory. */
export interface MemoryHost {
  /** Delivers an exit to its watches and to all listeners, to these only once. */
  deliver(event: ExitEvent, isFromRing: boolean): void;
  gap(gap: Gap): void;
  batchEnd(): void;
  /** Whether a source watches this process. */
  isWatched(id: string): boolean;
}

/**
 * Joins a monitor's live events with what its memory has: restores watches, stores exits before they
 * are delivered, and commits them afterwards.
 */
export class MonitorMemory {
  readonly #memory: Memory;
  readonly #host: MemoryHost;
  readonly #commitsItself: boolean;
  /** The watches of earlier monitors. */
  readonly #stored: readonly StoredWatch[];
  readonly #restored: PendingWatch[] = [];
  /** Those of them that nobody has taken, by their key, and what was handed back. */
  readonly #untaken = new Map<string | null, ExitWatch>();
  /** To deliver when the monitor is ready. */
  readonly #gone: ExitEvent[] = [];
  #downtime: ExitEvent[] = [];
  #loss: Gap | null = null;
  /** Delivered, to be committed when listeners have run. */
  #uncommitted: { id: string; isForWatches: boolean }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Nothing else reports how processes exit that are not watched. */
  #isAlone = false;
  #readyAtMs = 0;

  /** @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` */
  constructor(options: MemoryOptions, host: MemoryHost, commitsItself: boolean) {
    this.#memory = new Memory(options);
    this.#stored = this.#memory.stored;
    this.#host = host;
    this.#commitsItself = commitsItself;
  }

  /** Stores the next watch. */
  store(key: string | null): WatchStore {
    return {
      add: (identity) => this.#memory.add(identity, key),
      forget: (stored) => {
        this.#memory.forget(stored);
      },
    };
  }

  /** The exit of a process that is gone, if it is stored or recorded. */
  known(identity: ProcessIdentity): ExitEvent | null {
    const stored = this.#memory.storedExit(identity);
    if (stored !== null) return { ...stored, isRepeated: true };
    this.#memory.readSignals();
    return this.#memory.recorded(identity);
  }

  /** The watch was closed. */
  forget({ stored }: PendingWatch): void {
    if (stored !== null) this.#memory.forget(stored);
  }

  /** Arms the watches of earlier monitors, before the source starts. */
  restore(watches: WatchRegistry, open: () => ExitSource): void {
    const forget = (stored: StoredWatch): void => {
      this.#memory.forget(stored);
    };
    for (const stored of this.#stored) {
      const label = { key: stored.key, stored };
      const store: WatchStore = { add: () => stored, forget: () => undefined };
      const { identity } = stored;
      if (isOver(stored)) {
        const watch = watches.join(identity, label) ?? watches.add(identity, false, false, label);
        this.#restored.push(watch);
        this.handBack(watch);
        this.#gone.push(this.#exitOf(stored));
        continue;
      }
      try {
        const sources = { current: undefined, open };
        const { watch, gone } = armWatch(identity, watches, sources, { key: stored.key, store });
        this.#restored.push(watch);
        this.handBack(watch);
        if (gone !== null) this.#gone.push(this.#exitOf(stored));
        else this.#memory.resume(stored);
      } catch (error) {
        // Only this one cannot go on; it stays stored.
        const watch = new PendingWatch(identity, false, label, () => {
          forget(stored);
        });
        watch.reject(error as Error);
        this.#restored.push(watch);
      }
    }
    const { ring } = this.#memory;
    if (ring === null) return;
    this.#downtime = ring.drain(this.#isNotWatched);
    this.#loss = ring.loss();
  }

  /** The watch of this key that an earlier monitor had; it is handed out once. */
  takeRestored(identity: ProcessIdentity, key: string | null): ExitWatch | null {
    const watch = this.#untaken.get(key);
    if (watch === undefined || !isSameProcess(watch.identity, identity)) return null;
    this.#untaken.delete(key);
    return watch;
  }

  handBack(watch: ExitWatch): void {
    this.#untaken.set(watch.key, watch);
  }

  /** The exit of a process that is gone: a recorder may have it by now, even if it had not before. */
  #exitOf(stored: StoredWatch): ExitEvent {
    if (stored.exit !== null) return stored.exit;
    const { identity, at } = stored;
    const recorded = this.#memory.exitOf(stored);
    if (recorded !== null) return recorded;
    const known = goneBeforeWatch(identity);
    // It was alive when it was watched.
    const uncertaintyMs = Math.max(0, known.exitedAt.getTime() - at.getTime());
    return unknownExit({ ...known, uncertaintyMs }, 'gone-while-unobserved');
  }

  /** What `ready` says of the memory; see {@link describeReady}. */
  describe(ready: SourceReady): Ready {
    const { kind: memory, downgrade: memoryDowngrade } = this.#memory;
    this.#readyAtMs = Date.now();
    this.#isAlone = this.#memory.ring !== null && ready.filter !== 'ebpf';
    return { ...ready, memory, memoryDowngrade, restored: this.#restored.splice(0) };
  }

  /** Delivers what happened before the live stream began. */
  replay(): void {
    const { ring } = this.#memory;
    for (const event of this.#downtime.splice(0)) this.#host.deliver(event, true);
    this.#tellLoss(this.#loss);
    // Between the first look and the beginning of the live stream.
    if (!this.#isClosed) {
      for (const event of ring?.drain(this.#isFromBefore) ?? []) this.#host.deliver(event, true);
    }
    const gone = new Map(this.#gone.splice(0).map((event) => [event.id, event]));
    for (const event of gone.values()) this.#host.deliver(event, false);
    if (this.#isClosed) return; // by a listener
    this.#tickEvery(ring === null ? BESIDE_MS : ALONE_MS);
    this.#host.batchEnd();
  }

  /** The event to deliver for an exit. It is stored when this returns. */
  take(event: ExitEvent, watches: ReadonlySet<PendingWatch> | undefined): ExitEvent {
    if (watches === undefined) return event;
    const stored = [...watches].flatMap((watch) => watch.stored ?? []);
    const [first] = stored;
    const isLive = event.source !== 'recorder' && !event.isRepeated;
    const best = first !== undefined && isLive ? this.#memory.improve(event, first) : event;
    if (first !== undefined) this.#memory.store(best, stored);
    return best;
  }

  /** Whether listeners are to get an exit: not if they had it from the ring. */
  isForListeners(event: ExitEvent, isFromRing: boolean, isWatched: boolean): boolean {
    const { ring } = this.#memory;
    if (ring === null || isFromRing) return true;
    if (this.#isAlone && !isWatched) return false;
    return ring.onLive(event);
  }

  /** An exit was delivered to all. */
  onDelivered(id: string): void {
    this.#commitSoon(id, false);
  }

  /** An exit was delivered to its watches alone. */
  onWatchDelivered(id: string): void {
    this.#commitSoon(id, true);
  }

  batchEnd(): void {
    this.#memory.ring?.batchEnd();
  }

  commit(id: string): void {
    if (this.#isClosed) return;
    this.#memory.commit(id);
    this.#memory.removePrevious();
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`: something could not be forgotten */
  close(forget: boolean): void {
    clearInterval(this.#timer);
    this.#commitDelivered();
    this.#isClosed = true;
    this.#memory.close(forget);
  }

  /** What was lost is forgotten when the gap was delivered. */
  #tellLoss(loss: Gap | null): void {
    if (loss === null) return;
    this.#host.gap(loss);
    this.#memory.lossReported(loss);
  }

  #commitSoon(id: string, isForWatches: boolean): void {
    if (!this.#commitsItself || this.#isClosed) return;
    if (this.#uncommitted.length === 0) setImmediate(this.#commitDelivered);
    this.#uncommitted.push({ id, isForWatches });
  }

  readonly #commitDelivered = (): void => {
    if (this.#isClosed) return;
    const delivered = this.#uncommitted;
    this.#uncommitted = [];
    for (const { id, isForWatches } of delivered) {
      if (isForWatches) this.#memory.commitWatches(id);
      else this.#memory.commit(id);
    }
    if (delivered.length > 0) this.#memory.removePrevious();
  };

  #tickEvery(ms: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(this.#tick, ms);
    this.#timer.unref();
  }

  readonly #tick = (): void => {
    const { ring } = this.#memory;
    this.#memory.tick();
    if (ring === null) return;
    const missed = this.#isAlone ? ring.drain(this.#isDue) : ring.missed(this.#isNotWatched);
    const wasComparing = ring.isComparing();
    const loss = this.#isAlone ? ring.loss() : ring.lossBeforeLive();
    if (wasComparing && !ring.isComparing()) this.#tickEvery(BESIDE_MS);
    for (const event of missed) this.#host.deliver(event, true);
    this.#tellLoss(loss);
    if (missed.length > 0 || loss !== null) this.#host.batchEnd();
  };

  /** A source reports the exit of a watched process when it is really gone. */
  readonly #isNotWatched = ({ id }: ExitEvent): boolean => !this.#host.isWatched(id);

  /** The live stream tells more of what has ended since. */
  readonly #isFromBefore = (event: ExitEvent): boolean =>
    this.#isDue(event) && (this.#isAlone || event.exitedAt.getTime() <= this.#readyAtMs);

  readonly #isDue = (event: ExitEvent): boolean =>
    this.#isNotWatched(event) && (!this.#isAlone || isGone(event));
}

/** What `ready` says; `memory` is missing without `stateDir`. */
export function describeReady(ready: SourceReady, memory: MonitorMemory | undefined): Ready {
  if (memory !== undefined) return memory.describe(ready);
  return { ...ready, memory: 'none', memoryDowngrade: null, restored: [] };
}

/** Whether a process that was recorded is gone by now: it may take time to free its memory. */
function isGone({ id, pid }: ExitEvent): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return true;
  }
  const state = stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
  if (state === 'Z' || state === 'X') return true;
  const found = lookUp(pid);
  return typeof found === 'string' || found.id !== id;
}

/** Whether a stored watch needs no source: its exit is known, or it belongs to another boot. */
function isOver({ exit, identity }: StoredWatch): boolean {
  return exit !== null || identity.bootId !== bootId();
}
