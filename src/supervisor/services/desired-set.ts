import {
  isStored,
  newRecord,
  type Redact,
  type StoredSpec,
  toStored,
  RECORD_VERSION,
} from './service-record.js';
import type { ServiceSpec } from './service-spec.js';
import type { ServiceStore } from './service-store.js';
import type { WorkerHost } from './service-state.js';
import { ServiceWorker } from './service-worker.js';

/**
 * What {@link Supervisor.apply} changed.
 *
 * @see [Services](../../../docs/services.md)
 */
export type Applied = {
  added: string[];
  /** Their description differs. */
  changed: string[];
  removed: string[];
  unchanged: string[];
};

interface Change {
  spec: ServiceSpec | null;
  stored: StoredSpec;
}

/** Hands a desired set to the workers, all of it or nothing, even if we die in between. */
export class DesiredSet {
  readonly #host: WorkerHost;
  readonly #store: ServiceStore;
  readonly #workers: Map<string, ServiceWorker>;
  readonly #redact: Redact | undefined;

  constructor(host: WorkerHost, workers: Map<string, ServiceWorker>, redact: Redact | undefined) {
    this.#host = host;
    this.#store = host.store;
    this.#workers = workers;
    this.#redact = redact;
  }

  apply(specs: readonly ServiceSpec[]): Applied {
    const changes = new Map<string, Change>();
    for (const spec of specs) {
      const before = this.#workers.get(spec.name);
      const isEqual = before !== undefined && !before.isLeaving && isStored(spec, before.stored);
      const stored = isEqual ? before.stored : toStored(spec, this.#redact, before?.stored.salt);
      changes.set(spec.name, { spec, stored });
    }
    return this.#hand(changes);
  }

  /** What was accepted before we died. */
  replay(stored: readonly StoredSpec[]): void {
    const changes = stored.map((each): [string, Change] => [
      each.spec.name,
      { spec: each.isRedacted ? null : each.spec, stored: each },
    ]);
    this.#hand(new Map(changes), true);
  }

  #hand(changes: ReadonlyMap<string, Change>, isPending = false): Applied {
    const applied: Applied = { added: [], changed: [], removed: [], unchanged: [] };
    for (const [name, { stored }] of changes) applied[this.#changeOf(name, stored)].push(name);
    for (const worker of this.#workers.values()) {
      if (!changes.has(worker.name) && !worker.isLeaving) applied.removed.push(worker.name);
    }
    const writes = applied.added.length + applied.changed.length + applied.removed.length;
    // What an earlier call has left must not be replayed over this one.
    const isJournalled = (writes > 1 || this.#store.hasPending) && !isPending;
    if (isJournalled) {
      const services = [...changes.values()].map(({ stored }) => stored);
      this.#store.savePending({ version: RECORD_VERSION, services });
    }
    for (const name of applied.removed) this.#workers.get(name)?.remove();
    for (const name of [...applied.added, ...applied.changed]) {
      const change = changes.get(name);
      if (change !== undefined) this.#change(name, change);
    }
    for (const name of applied.unchanged) {
      const spec = changes.get(name)?.spec ?? null;
      if (spec !== null) this.#workers.get(name)?.confirm(spec);
    }
    if (isJournalled || isPending) this.#store.removePending();
    return applied;
  }

  #changeOf(name: string, stored: StoredSpec): 'added' | 'changed' | 'unchanged' {
    const worker = this.#workers.get(name);
    if (worker === undefined || worker.isLeaving) return 'added';
    return worker.stored.digest === stored.digest ? 'unchanged' : 'changed';
  }

  #change(name: string, { spec, stored }: Change): void {
    const worker = this.#workers.get(name);
    if (worker !== undefined) {
      worker.update(spec, stored);
      return;
    }
    const record = newRecord(stored);
    this.#store.save(record);
    const added = new ServiceWorker(this.#host, record, spec);
    this.#workers.set(name, added);
    added.begin();
  }
}
