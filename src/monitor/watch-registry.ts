import { ExitwatchError } from '../common/errors.js';
import type { ProcessIdentity } from '../identity/process-identity.js';
import { WatchedIdentities } from '../sources/watched-identities.js';

import { PendingWatch, type WatchLabel } from './exit-watch.js';

/** All open watches, by process. */
export class WatchRegistry {
  /** By the id of the process; usually one watch each. */
  readonly #watches = new Map<string, Set<PendingWatch>>();
  /**
   * Identities that the source watches. A process can have two identities (with and without an
   * inode), but is watched once.
   */
  readonly #identities = new WatchedIdentities();
  readonly #onClosed: (watch: PendingWatch, isLast: boolean) => void;

  /**
   * `onClosed`: a watch was closed, perhaps after it had resolved; `isLast`: it was the last one of
   * its process.
   */
  constructor(onClosed: (watch: PendingWatch, isLast: boolean) => void) {
    this.#onClosed = onClosed;
  }

  /** Processes under watch. */
  get size(): number {
    return this.#watches.size;
  }

  /** Whether the source watches a process with this pid. */
  hasPid(pid: number): boolean {
    return this.#identities.has(pid);
  }

  has(id: string): boolean {
    return this.#watches.has(id);
  }

  /** The identity under which this process is already watched. */
  identityOf(identity: ProcessIdentity): ProcessIdentity | undefined {
    return this.#identities.of(identity);
  }

  /** Adds a watch of a process that is already watched. */
  join(identity: ProcessIdentity, label: WatchLabel): PendingWatch | undefined {
    const others = this.#watches.get(identity.id);
    if (others === undefined) return undefined;
    const [first] = others;
    const watch = this.#newWatch(identity, first?.hasPidfd ?? false, label);
    others.add(watch);
    return watch;
  }

  /** Adds the first watch of a process. `isArmed`: the source watches it. */
  add(
    identity: ProcessIdentity,
    hasPidfd: boolean,
    isArmed: boolean,
    label: WatchLabel,
  ): PendingWatch {
    const watch = this.#newWatch(identity, hasPidfd, label);
    this.#watches.set(identity.id, new Set([watch]));
    if (isArmed) this.#identities.add(identity);
    return watch;
  }

  /** Removes and returns all watches of a process that has exited; the caller resolves them. */
  take(id: string): Set<PendingWatch> | undefined {
    // A lookup makes V8 flatten and hash the id: skip it if there are no watches.
    if (this.#watches.size === 0) return undefined;
    const watches = this.#watches.get(id);
    if (watches === undefined) return undefined;
    this.#watches.delete(id);
    const [first] = watches;
    if (first !== undefined) this.#identities.delete(first.identity);
    return watches;
  }

  rejectAll(error: Error): void {
    for (const watches of this.#watches.values()) {
      for (const watch of watches) watch.reject(error);
    }
    this.#watches.clear();
    this.#identities.clear();
  }

  #newWatch(identity: ProcessIdentity, hasPidfd: boolean, label: WatchLabel): PendingWatch {
    return new PendingWatch(identity, hasPidfd, label, (watch) => {
      this.#close(watch);
    });
  }

  #close(watch: PendingWatch): void {
    const { identity } = watch;
    const watches = this.#watches.get(identity.id);
    if (watches?.delete(watch) !== true) {
      this.#onClosed(watch, false); // it has resolved, or its monitor is closed
      return;
    }
    watch.reject(new ExitwatchError('ERR_EXITWATCH_CLOSED', 'the watch was closed'));
    const isLast = watches.size === 0;
    if (isLast) {
      this.#watches.delete(identity.id);
      this.#identities.delete(identity);
    }
    this.#onClosed(watch, isLast);
  }
}
