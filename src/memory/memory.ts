import { ExitwatchError } from '../common/errors.js';
import { bootId } from '../identity/boot-id.js';
import type { Downgrade, ExitEvent, Gap } from '../events/exit-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';
import { addonRefusal } from '../native/load-addon.js';
import { failureDowngrade } from '../sources/downgrade.js';

import { DescriptorStore } from './descriptor-store.js';
import { ExitRing } from './exit-ring.js';
import { joined } from './join-exits.js';
import { refuseNoRecorder } from './no-recorder.js';
import { openRecorders, pinsOf, type RecorderSize, removePins } from './recorder-pins.js';
import { Recordings } from './recordings.js';
import { StateFolder } from './state-folder.js';
import { openStoredRecorder, removeStoredRecorder } from './stored-recorder.js';
import { StoredPidfds } from './stored-pidfds.js';
import { type StoredWatch, WatchLog } from './watch-log.js';

/**
 * What remembers exits while no monitor is running.
 *
 * @see [What ended while nobody watched](../../docs/memory.md)
 */
export type MemoryKind = 'recorder' | 'descriptor-store' | 'none';

/** Of an {@link ExitMonitor}, with its defaults. */
export interface MemoryOptions {
  /** An absolute path. */
  stateDir: string;
  scope: 'watched' | 'all';
  /** The folder of all recorders. */
  pinDir: string;
  size: RecorderSize;
}

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
  readonly #recordings = new Recordings();
  /** Watches by the id of their process. */
  readonly #byProcess = new Map<string, Set<StoredWatch>>();
  /** Watches whose exit was delivered, by the event's id. */
  readonly #delivered = new Map<string, StoredWatch[]>();
  #pidfds: StoredPidfds | undefined;
  readonly #ring: ExitRing | null;
  #hasWarned = false;

  /** @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` */
  constructor(options: MemoryOptions) {
    this.#options = options;
    this.#folder = new StateFolder(options.stateDir);
    try {
      this.#log = new WatchLog(this.#folder);
      for (const stored of this.#log.watches) this.#index(stored);
      this.downgrade = this.#openRecorders();
      const isPinned = !this.#recordings.isEmpty;
      const hasStore = !isPinned && addonRefusal() === null && this.#openStore();
      this.kind = isPinned ? 'recorder' : hasStore ? 'descriptor-store' : 'none';
      this.readSignals();
    } catch (error) {
      this.#folder.close();
      throw error;
    }
    const { rings } = this.#recordings;
    this.#ring = options.scope === 'all' && rings.length > 0 ? new ExitRing(rings) : null;
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
    } catch (error) {
      this.#warn(error);
    }
    this.#forgetPidfd(stored);
    const others = this.#byProcess.get(stored.identity.id);
    others?.delete(stored);
    if (others !== undefined && others.size > 0) return;
    this.#byProcess.delete(stored.identity.id);
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
        this.#warn(error);
      }
    }
  }

  /** The reader of this exit has stored it. */
  commit(id: string): void {
    this.#ring?.commit(id);
    const watches = this.#delivered.get(id);
    if (watches === undefined) return;
    this.#delivered.delete(id);
    for (const stored of watches) this.forget(stored);
  }

  /** More exits than fit, since this was last asked. */
  loss(): Gap | null {
    return this.#ring?.loss() ?? null;
  }

  /** Call this about each second. */
  tick(): void {
    this.readSignals();
    this.#recordings.renewLease();
    this.removePrevious();
  }

  /** Removes the recorders that this one's has replaced, once nothing needs them. */
  removePrevious(): void {
    this.#recordings.removePrevious(this.#ring);
  }

  /** `forget`: removes the recorder, and forgets all watches. */
  close(forget: boolean): void {
    if (forget) for (const stored of this.#log.watches) this.forget(stored);
    this.#recordings.close();
    if (forget && this.kind === 'recorder') {
      const { pinDir, stateDir } = this.#options;
      for (const folder of this.#recordings.previousFolders) removePins(folder);
      removePins(pinsOf(pinDir, stateDir));
    }
    if (forget && this.kind === 'descriptor-store') {
      removeStoredRecorder(DescriptorStore.of(this.#options.stateDir));
    }
    this.#log.close();
    this.#folder.close();
  }

  #index(stored: StoredWatch): void {
    const { id } = stored.identity;
    const others = this.#byProcess.get(id);
    if (others === undefined) this.#byProcess.set(id, new Set([stored]));
    else others.add(stored);
  }

  /** Returns why there is no recorder, or no better one; `null` if there is. */
  #openRecorders(): Downgrade | null {
    const noAddon = addonRefusal();
    if (noAddon !== null) return failureDowngrade(noAddon);
    const { pinDir: root, stateDir, scope, size } = this.#options;
    try {
      const ringBytes = scope === 'all' ? size.ringBytes : 0;
      const opened = openRecorders({ root, stateDir, size: { ...size, ringBytes } });
      this.#recordings.addPinned(opened);
      this.#recordings.retain(this.#log.watches.map(({ identity }) => identity));
      return opened.lacks;
    } catch (error) {
      return refuseNoRecorder(error);
    }
  }

  /** Without pins, systemd keeps the recorder; without a recorder, pidfds. `false`: it keeps none. */
  #openStore(): boolean {
    const { stateDir, scope, size } = this.#options;
    const store = DescriptorStore.of(stateDir);
    if (store === null) return false;
    const ringBytes = scope === 'all' ? size.ringBytes : 0;
    const recorder = openStoredRecorder(store, { stateDir, size: { ...size, ringBytes } });
    if (recorder !== null) {
      this.#recordings.add(recorder);
      return true;
    }
    this.#pidfds = new StoredPidfds(store);
    this.#pidfds.retain(this.#log.watches);
    return true;
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
