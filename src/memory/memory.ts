import { ExitwatchError } from '../common/errors.js';
import { bootId } from '../identity/boot-id.js';
import type { Downgrade, ExitEvent, Gap } from '../events/exit-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { DescriptorStore } from './descriptor-store.js';
import { ExitRing } from './exit-ring.js';
import { joined } from './join-exits.js';
import { type MemoryKind, type MemoryOptions, openKeeping } from './keeping.js';
import { removePins } from './pin-folder.js';
import { recordersOf } from './recorder-list.js';
import type { Recordings } from './recordings.js';
import { StateFolder } from './state-folder.js';
import type { StoredPidfds } from './stored-pidfds.js';
import { type StoredWatch, WatchLog } from './watch-log.js';

/**
 * What a monitor remembers beyond its own life: its watches in a file, and their exits in a recorder
 * in the kernel.
 */
export class Memory {
  readonly kind: MemoryKind;
  readonly downgrade: Downgrade | null;
  readonly #options: MemoryOptions;
  readonly #folder: StateFolder;
  readonly #log: WatchLog;
  readonly #recordings: Recordings;
  /** Watches by the id of their process. */
  readonly #byProcess = new Map<string, Set<StoredWatch>>();
  /** Watches whose exit was delivered, by the event's id. */
  readonly #delivered = new Map<string, StoredWatch[]>();
  /** Those that could not be forgotten yet, because the disk is full. */
  readonly #unforgotten = new Set<StoredWatch>();
  readonly #pidfds: StoredPidfds | null;
  readonly #ring: ExitRing | null;
  /** Since when an exit may be delivered again because it could not be stored, by performance.now(). */
  #unstoredMs: number | null = null;
  #hasWarned = false;
  #isClosed = false;

  /** @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` */
  constructor(options: MemoryOptions) {
    this.#options = options;
    this.#folder = new StateFolder(options.stateDir);
    try {
      this.#log = new WatchLog(this.#folder);
    } catch (error) {
      this.#folder.close();
      throw error;
    }
    try {
      for (const stored of this.#log.watches) this.#index(stored);
      const keeping = openKeeping(options, this.#log.watches);
      this.kind = keeping.kind;
      this.downgrade = keeping.downgrade;
      this.#recordings = keeping.recordings;
      this.#pidfds = keeping.pidfds;
    } catch (error) {
      this.#log.close();
      this.#folder.close();
      throw error;
    }
    this.readSignals();
    const { rings } = this.#recordings;
    this.#ring =
      options.scope === 'all' && rings.length > 0 ? new ExitRing(rings, options.maxDelayMs) : null;
  }

  /** The exits of all processes; `null` with scope `'watched'`, and without a recorder. */
  get ring(): ExitRing | null {
    return this.#ring;
  }

  /** The watches of earlier monitors. */
  get stored(): StoredWatch[] {
    return this.#log.watches;
  }

  /**
   * Stores a watch, and has the exit of its process recorded. Call this before arming the watch.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_RECORDER_FULL`, `ERR_EXITWATCH_STATE_DIR`
   */
  add(identity: ProcessIdentity, key: string | null): StoredWatch {
    const stored = this.#log.add(identity, key);
    this.#index(stored);
    try {
      this.#recordings.watch(identity);
      this.#pidfds?.add(stored);
    } catch (error) {
      this.forget(stored);
      throw error;
    }
    return stored;
  }

  /** Has the exit of a stored watch's process recorded, if it is not. */
  resume({ identity }: StoredWatch): void {
    try {
      this.#recordings.watch(identity);
    } catch (error) {
      this.#warn(error);
    }
  }

  /** The watch was closed, or could not be armed, or its exit is committed. */
  forget(stored: StoredWatch): void {
    try {
      this.#log.forget(stored.watch);
      this.#unforgotten.delete(stored);
    } catch (error) {
      this.#unforgotten.add(stored);
      this.#warn(error);
      return;
    }
    this.#forgetPidfd(stored);
    const { id } = stored.identity;
    const uncommitted = this.#delivered.get(id)?.filter((each) => each !== stored);
    if (uncommitted?.length === 0) this.#delivered.delete(id);
    else if (uncommitted !== undefined) this.#delivered.set(id, uncommitted);
    const others = this.#byProcess.get(id);
    others?.delete(stored);
    if (others !== undefined && others.size > 0) return;
    this.#byProcess.delete(id);
    // Only after the row says so: otherwise a crash would lose the exit.
    this.#recordings.forget(stored.identity);
  }

  /** What recorders have of the exit of a process; the process may not be quite gone yet. */
  recorded(identity: ProcessIdentity): ExitEvent | null {
    return identity.bootId === bootId() ? this.#recordings.find(identity) : null;
  }

  /** The exit of a stored watch's process that is gone; `null` if nothing has it. */
  exitOf(stored: StoredWatch): ExitEvent | null {
    if (stored.identity.bootId !== bootId()) return null;
    return this.recorded(stored.identity) ?? this.#pidfds?.exitOf(stored) ?? null;
  }

  /** The exit of a process as it was stored; `null` if it was not. */
  storedExit({ id }: ProcessIdentity): ExitEvent | null {
    for (const { exit } of this.#byProcess.get(id) ?? []) if (exit !== null) return exit;
    return null;
  }

  /** Call this before `recorded()`, and about each second. */
  readSignals(): void {
    this.#recordings.readSignals();
  }

  /** The best that is known of an exit which a source has reported. */
  improve(event: ExitEvent, { identity }: StoredWatch): ExitEvent {
    if (event.source === 'connector' && event.traced) return event;
    this.readSignals();
    const recorded = this.recorded(identity);
    return recorded === null ? event : joined(event, recorded);
  }

  /** Stores an exit before it is delivered. */
  store(event: ExitEvent, watches: readonly StoredWatch[]): void {
    this.#delivered.set(event.id, [...(this.#delivered.get(event.id) ?? []), ...watches]);
    for (const stored of watches) {
      if (stored.exit !== null) continue;
      try {
        this.#log.setExit(stored.watch, event);
      } catch (error) {
        this.#unstoredMs ??= performance.now();
        this.#warn(error);
      }
    }
  }

  /** The reader of this exit has stored it. */
  commit(id: string): void {
    if (this.#isClosed) return;
    this.#ring?.commit(id);
    this.commitWatches(id);
  }

  /** The same of the watches alone: listeners have not had the exit from the ring yet. */
  commitWatches(id: string): void {
    const watches = this.#delivered.get(id);
    if (watches === undefined) return;
    this.#delivered.delete(id);
    for (const stored of watches) this.forget(stored);
  }

  /** The gap was delivered. */
  lossReported(gap: Gap): void {
    if (!this.#isClosed) this.#ring?.lossReported(gap);
  }

  /** Call this about each second. */
  tick(): void {
    this.readSignals();
    this.#recordings.letGo(this.#ring, this.#unstoredMs ?? Infinity);
    for (const stored of this.#unforgotten) this.forget(stored);
    this.#recordings.renewLease();
    if (this.#ring === null) this.#recordings.drainUnread();
    this.removePrevious();
  }

  /** Removes the recorders that this one's has replaced, once nothing needs them. */
  removePrevious(): void {
    try {
      this.#recordings.removePrevious(this.#ring);
    } catch (error) {
      this.#warn(error);
    }
  }

  /**
   * `forget`: removes the recorder, and forgets all watches.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR` if something cannot be forgotten; it is closed
   *   all the same.
   */
  close(forget: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      if (forget) this.#forgetAll();
      else this.#ring?.close();
    } catch (error) {
      throw this.#folder.error(error);
    } finally {
      this.#recordings.close();
      this.#log.close();
      this.#folder.close();
    }
  }

  #forgetAll(): void {
    const { pinDir, stateDir } = this.#options;
    for (const { watch } of this.#log.watches) this.#log.forget(watch);
    this.#recordings.retain([]);
    // One that root has pinned for us stays, without watches.
    if (this.kind === 'recorder') recordersOf(pinDir, stateDir).forEach(removePins);
    if (this.kind === 'descriptor-store') {
      const store = DescriptorStore.of(stateDir);
      for (const name of store?.names ?? []) store?.remove(name);
    }
  }

  #index(stored: StoredWatch): void {
    const { id } = stored.identity;
    const others = this.#byProcess.get(id);
    if (others === undefined) this.#byProcess.set(id, new Set([stored]));
    else others.add(stored);
  }

  #forgetPidfd(stored: StoredWatch): void {
    try {
      this.#pidfds?.forget(stored);
    } catch (error) {
      this.#warn(error);
    }
  }

  /** Exits are delivered even if they cannot be stored. */
  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { message } = error as Error;
    process.emitWarning(`${message}; exits may be delivered again after a restart`, {
      type: 'ExitwatchWarning',
      code: error instanceof ExitwatchError ? error.code : 'ERR_EXITWATCH_STATE_DIR',
    });
  }
}
