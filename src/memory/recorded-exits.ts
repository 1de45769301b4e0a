import type { ExitEvent } from '../events/exit-event.js';
import { bootId } from '../identity/boot-id.js';
import { bootPrefix, type ProcessIdentity } from '../identity/process-identity.js';
import { SignalFlag } from '../native/abi.js';
import type { NativeLoss, NativeRecorder } from '../native/addon.js';
import { IdWriter } from '../native/id-writer.js';
import { KernelRecords } from '../native/kernel-records.js';
import { SignalRecords } from '../native/signal-records.js';
import { CgroupPaths } from '../trace/cgroup-paths.js';
import { SignalHistory } from '../trace/signal-history.js';
import { joinStory } from '../trace/signal-story.js';

import { RecordedSignals } from './recorded-signals.js';

/** Records that cross at once. */
const BATCH = 512;

/** The most that a recorder has of one process: see RecorderSlot. */
const MOST_SIGNALS = 128;

/** An exit of any process. */
export interface RingExit {
  id: string;
  /** The position in the ring after it. */
  end: number;
  /** `null`: it was not asked for. */
  event: ExitEvent | null;
}

/** Reads a recorder's records as events; removes nothing. */
export class RecordedExits {
  readonly #recorder: NativeRecorder;
  readonly #cgroups: CgroupPaths;
  readonly #records: KernelRecords;
  readonly #signals = new SignalRecords(BATCH);
  readonly #kept = new SignalRecords(MOST_SIGNALS);
  readonly #ends = new Float64Array(BATCH);
  readonly #history: SignalHistory;
  readonly #received: RecordedSignals;
  readonly #isTrusted: boolean;

  constructor(recorder: NativeRecorder) {
    this.#recorder = recorder;
    const about = recorder.about();
    this.#isTrusted = about?.isTrusted === true;
    this.#received = new RecordedSignals(recorder);
    this.#cgroups = new CgroupPaths((id) => recorder.cgroupPath(id));
    this.#history = new SignalHistory(this.#cgroups);
    // A recorder works in the host's pid namespace only.
    const ids = new IdWriter(bootPrefix(bootId(), null));
    this.#records = new KernelRecords(BATCH, this.#cgroups, ids, about?.hasInodes === true);
  }

  /** Call this now and then, and before {@link find}. */
  readSignals(): void {
    this.#received.read();
  }

  /** The exit of a watched process; `null` if none is recorded. */
  find(identity: ProcessIdentity): ExitEvent | null {
    const { pid, startTicks, inode } = identity;
    const { buffer } = this.#records;
    const count = this.#recorder.find(pid, startTicks, inode ?? 0, buffer, this.#kept.buffer);
    if (count === undefined) return null;
    const signals = [...this.#received.of(pid)];
    let isWhole = true;
    for (let i = 0; i < count; i++) {
      const signal = this.#kept.signal(i);
      if ((signal.flags & SignalFlag.replaced) !== 0) isWhole = false;
      signals.push(signal);
    }
    const history = new SignalHistory(this.#cgroups);
    for (const signal of signals.sort((a, b) => a.timeNs - b.timeNs)) history.add(signal);
    const losses = this.#recorder.losses();
    const event = this.#eventOf(0, history, [losses.signals, losses.watched]);
    if (!isWhole) {
      event.traced = false;
      event.tracedSince = null;
    }
    event.id = identity.id;
    return event;
  }

  /**
   * The next exits of all processes, in order; empty at the end. `isWanted`: whether to make the event, which costs
   * most of the time; the live stream has delivered nearly all.
   */
  readRing(isWanted: (id: string) => boolean): RingExit[] {
    const exits: RingExit[] = [];
    const { buffer } = this.#records;
    for (;;) {
      const count = this.#recorder.readRing(buffer, this.#signals.buffer, this.#ends.buffer);
      if (count === 0) return exits;
      const losses = this.#recorder.losses();
      let exitAt = 0;
      let signalAt = 0;
      for (let i = 0; i < count; i++) {
        const end = this.#ends[i] ?? 0;
        if (end < 0) {
          this.#history.add(this.#signals.signal(signalAt++));
          continue;
        }
        const id = this.#records.exitId(exitAt);
        const event = isWanted(id)
          ? this.#eventOf(exitAt, this.#history, [losses.signals, losses.exits])
          : this.#forget(exitAt);
        exits.push({ id, end, event });
        exitAt++;
      }
      if (exits.length > 0) return exits;
    }
  }

  /** Nobody needs the signals that it was sent. */
  #forget(index: number): null {
    if (!this.#history.isEmpty)
      this.#history.end(this.#records.end(index, { signal: null }), false);
    return null;
  }

  #eventOf(index: number, history: SignalHistory, losses: readonly NativeLoss[]): ExitEvent {
    const event = this.#records.exit(index);
    const story = this.#isTrusted ? history.end(this.#records.end(index, event), false) : null;
    if (losses.some((loss) => overlaps(loss, event))) event.traced = false;
    joinStory(event, story);
    event.source = 'recorder';
    return event;
  }
}

/**
 * Whether something may have been lost while the process was traced. It is no longer known when the
 * loss began once it was acknowledged.
 */
function overlaps({ firstMs, lastMs }: NativeLoss, { tracedSince, exitedAt }: ExitEvent): boolean {
  if (lastMs === 0) return false;
  return lastMs + 1 >= (tracedSince?.getTime() ?? 0) && firstMs - 1 <= exitedAt.getTime();
}
