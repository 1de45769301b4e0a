import { RECEIVED_MS } from '../events/ended-by.js';
import type { NativeRecorder } from '../native/addon.js';
import type { End } from '../native/kernel-records.js';
import { SignalRecords, type TracedSignal } from '../native/signal-records.js';

import { SignalsByPid } from './signals-by-pid.js';

/** Records that cross at once. */
const BATCH = 512;

/** How long to keep signals that are no requests: events report those of the last {@link RECEIVED_MS}. */
const KEPT_MS = RECEIVED_MS + 5000;

/** How long to keep those that a process blocks: they may end it later. */
const BLOCKED_MS = 60 * 60 * 1000;

/** The signals that a recorder has seen and that ended nobody, or nobody yet, as long as an exit may need them. */
export class RecordedSignals {
  readonly #recorder: NativeRecorder;
  readonly #records = new SignalRecords(BATCH);
  readonly #ends = new Float64Array(BATCH);
  readonly #byPid = new SignalsByPid();
  /** Up to where was read, and when, by performance.now(), oldest first. */
  readonly #read: { at: number; end: number }[] = [];
  /** Since when requests are known, by Date.now(). */
  #sinceMs: number | null = null;

  constructor(recorder: NativeRecorder) {
    this.#recorder = recorder;
  }

  /** Reads on. */
  read(): void {
    const exits = new ArrayBuffer(0);
    const nowMs = performance.now();
    for (;;) {
      const count = this.#recorder.readSignals(exits, this.#records.buffer, this.#ends.buffer);
      this.#sinceMs ??= firstMs(count > 0 ? this.#records.signal(0) : null);
      for (let i = 0; i < count; i++) this.#byPid.add(this.#records.signal(i), nowMs);
      if (count > 0) this.#read.push({ at: nowMs, end: -(this.#ends[count - 1] ?? 0) });
      if (count < BATCH) break;
    }
  }

  /** Since when all requests to processes that have not ended are known; an earlier reader has let go of older ones. */
  get requestsSince(): Date {
    return new Date(this.#sinceMs ?? Date.now());
  }

  /** Those that processes with this pid were sent. */
  get byPid(): Pick<SignalsByPid, 'of' | 'isWhole'> {
    return this.#byPid;
  }

  /** The process has exited. */
  end(end: Pick<End, 'pid' | 'inode' | 'startTicks'>): void {
    this.#byPid.end(end);
  }

  /** Lets go of what no exit needs that was read since `sinceMs`, by performance.now(). */
  letGo(sinceMs: number): void {
    let end = 0;
    while ((this.#read[0]?.at ?? Infinity) < sinceMs - KEPT_MS) end = this.#read.shift()?.end ?? 0;
    if (end === 0) return;
    this.#recorder.commitSignals(end);
    this.#byPid.letGo(sinceMs - KEPT_MS, sinceMs - BLOCKED_MS);
  }
}

/** Nobody lets go of what is not older; the first one that is there was not let go of, nor any after it. */
function firstMs(first: TracedSignal | null): number {
  const keptMs = Date.now() - RECEIVED_MS;
  return Math.min(keptMs, first?.sentAtMs ?? keptMs);
}
