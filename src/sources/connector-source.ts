import { loadAddon, translateFailure, type ExitReader } from '../addon.js';
import type { Filter, Ready } from '../exit-event.js';
import type { ProcessIdentity } from '../process-identity.js';

import { ConnectorRecords, Kind, RECORD_BYTES } from './connector-records.js';
import type { ExitSource, SourceListener, SourceStats } from './exit-source.js';
import { filterDowngrade } from './filter-downgrade.js';

/** Records that cross at once. */
const BATCH = 512;

/** The proc connector, read by a thread of the addon. */
export class ConnectorSource implements ExitSource {
  readonly #scope: 'watched' | 'all';
  readonly #listener: SourceListener;
  readonly #records = new ConnectorRecords(BATCH);
  readonly #reader: ExitReader;
  #filter: Filter | null = null;

  constructor(
    options: {
      scope: 'watched' | 'all';
      receiveBufferBytes: number;
      queueLimit: number;
      canaryIntervalMs: number;
    },
    listener: SourceListener,
  ) {
    this.#scope = options.scope;
    this.#listener = listener;
    const addon = loadAddon();
    if (addon.recordBytes !== RECORD_BYTES) {
      throw new Error(`the addon is of another version: ${addon.recordBytes} bytes a record`);
    }
    this.#reader = new addon.ExitReader({
      watchedOnly: options.scope === 'watched',
      classicFilter: process.env['EXITWATCH_FILTER'] === 'classic',
      receiveBufferBytes: options.receiveBufferBytes,
      queueLimit: options.queueLimit,
      canaryIntervalMs: options.canaryIntervalMs,
    });
  }

  start(): void {
    this.#call(() => {
      this.#reader.start(this.#records.buffer, (count) => {
        this.#onBatch(count);
      });
    });
  }

  watch({ pid, startTicks, inode }: ProcessIdentity): boolean {
    return this.#call(() => this.#reader.watch(pid, startTicks, inode ?? 0));
  }

  unwatch({ pid, startTicks, inode }: ProcessIdentity): void {
    this.#reader.unwatch(pid, startTicks, inode ?? 0);
  }

  stats(): SourceStats {
    const { lastEventMs, canaryAgeMs = null, ...counts } = this.#reader.stats();
    return {
      ...counts,
      lastEventAt: lastEventMs === 0 ? null : new Date(lastEventMs),
      canaryAgeMs,
      filter: this.#filter,
      watchedSet: this.#watchedSet(),
    };
  }

  ref(): void {
    this.#reader.ref();
  }

  unref(): void {
    this.#reader.unref();
  }

  close(): void {
    this.#reader.close();
  }

  #call<Result>(use: () => Result): Result {
    try {
      return use();
    } catch (error) {
      throw translateFailure(error);
    }
  }

  #ready(receiveBufferBytes: number): Ready {
    const downgrade = filterDowngrade(this.#reader.filter());
    this.#filter = downgrade === null ? 'group-aware' : 'classic';
    return {
      event: 'ready',
      scope: this.#scope,
      source: 'connector',
      filter: this.#filter,
      downgrade,
      receiveBufferBytes,
    };
  }

  #watchedSet(): SourceStats['watchedSet'] {
    if (this.#scope === 'all' || this.#filter === null) return null;
    return this.#filter === 'group-aware' ? 'kernel' : 'user-space';
  }

  #onBatch(count: number): void {
    for (let index = 0; index < count; index++) {
      switch (this.#records.kind(index)) {
        case Kind.exit:
          this.#listener.exit(this.#records.exit(index), this.#records.isTold(index));
          break;
        case Kind.gap:
          this.#listener.gap(this.#records.gap(index));
          break;
        case Kind.ready:
          this.#listener.ready(this.#ready(this.#records.receiveBufferBytes(index)));
          break;
        case Kind.failed:
          this.#listener.failed(this.#records.failure(index));
          break;
      }
    }
    this.#listener.batchEnd();
  }
}
