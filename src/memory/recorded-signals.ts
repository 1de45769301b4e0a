import { RECEIVED_MS } from '../events/ended-by.js';
import type { NativeRecorder } from '../native/addon.js';
import { SignalRecords } from '../native/signal-records.js';

import { SignalsByPid } from './signals-by-pid.js';

/** Records that cross at once. */
const BATCH = 512;

/** How long to keep signals: events report those of the last {@link RECEIVED_MS}. */
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

  constructor(recorder: NativeRecorder) {
    this.#recorder = recorder;
  }

  /** Reads on, and lets go of what no exit will need. */
  read(): void {
    const exits = new ArrayBuffer(0);
    const nowMs = performance.now();
    for (;;) {
      const count = this.#recorder.readSignals(exits, this.#records.buffer, this.#ends.buffer);
      for (let i = 0; i < count; i++) this.#byPid.add(this.#records.signal(i), nowMs);
      if (count > 0) this.#read.push({ at: nowMs, end: -(this.#ends[count - 1] ?? 0) });
      if (count < BATCH) break;
    }
    this.#letGo(nowMs);
  }

  /** Those that processes with this pid were sent. */
  get byPid(): Pick<SignalsByPid, 'of' | 'isWhole'> {
    return this.#byPid;
  }

  #letGo(nowMs: number): void {
    let end = 0;
    while ((this.#read[0]?.at ?? Infinity) < nowMs - KEPT_MS) end = this.#read.shift()?.end ?? 0;
    if (end === 0) return;
    this.#recorder.commitSignals(end);
    this.#byPid.letGo(nowMs - KEPT_MS, nowMs - BLOCKED_MS);
  }
}
