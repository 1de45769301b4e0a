import { RECEIVED_MS } from '../events/ended-by.js';
import type { NativeRecorder } from '../native/addon.js';
import { SignalRecords, type TracedSignal } from '../native/signal-records.js';

/** Records that cross at once. */
const BATCH = 512;

/** How many signals to keep for each pid: events report 16. */
const MOST = 64;

/** How long to keep signals: events report those of the last {@link RECEIVED_MS}. */
const KEPT_MS = RECEIVED_MS + 5000;

/** The signals that a recorder has seen and that ended nobody, as long as an exit may need them. */
export class RecordedSignals {
  readonly #recorder: NativeRecorder;
  readonly #records = new SignalRecords(BATCH);
  readonly #ends = new Float64Array(BATCH);
  readonly #byPid = new Map<number, TracedSignal[]>();
  /** Up to where was read, and when, oldest first. */
  readonly #read: { at: number; end: number }[] = [];

  constructor(recorder: NativeRecorder) {
    this.#recorder = recorder;
  }

  /** Reads on, and lets go of what no exit will need. */
  read(): void {
    const exits = new ArrayBuffer(0);
    for (;;) {
      const count = this.#recorder.readSignals(exits, this.#records.buffer, this.#ends.buffer);
      for (let i = 0; i < count; i++) this.#add(this.#records.signal(i));
      if (count > 0) this.#read.push({ at: Date.now(), end: -(this.#ends[count - 1] ?? 0) });
      if (count < BATCH) break;
    }
    this.#letGo(Date.now() - KEPT_MS);
  }

  /** Those that processes with this pid were sent. */
  of(pid: number): readonly TracedSignal[] {
    return this.#byPid.get(pid) ?? [];
  }

  #add(signal: TracedSignal): void {
    const signals = this.#byPid.get(signal.pid);
    if (signals === undefined) {
      this.#byPid.set(signal.pid, [signal]);
      return;
    }
    signals.push(signal);
    if (signals.length > MOST) signals.shift();
  }

  #letGo(before: number): void {
    let end = 0;
    while ((this.#read[0]?.at ?? Infinity) < before) end = this.#read.shift()?.end ?? 0;
    if (end === 0) return;
    this.#recorder.commitSignals(end);
    for (const [pid, signals] of this.#byPid) {
      const kept = signals.filter(({ sentAtMs }) => sentAtMs >= before);
      if (kept.length === 0) this.#byPid.delete(pid);
      else if (kept.length < signals.length) this.#byPid.set(pid, kept);
    }
  }
}
