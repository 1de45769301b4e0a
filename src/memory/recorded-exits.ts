import type { ExitEvent } from '../events/exit-event.js';
import { bootId } from '../identity/boot-id.js';
import { bootPrefix, type ProcessIdentity } from '../identity/process-identity.js';
import { SignalFlag } from '../native/abi.js';
import type { NativeLoss, NativeRecorder } from '../native/addon.js';
import { IdWriter } from '../native/id-writer.js';
import { KernelRecords } from '../native/kernel-records.js';
import { SignalRecords, type TracedSignal } from '../native/signal-records.js';
import { CgroupPaths } from '../trace/cgroup-paths.js';
import { SignalHistory } from '../trace/signal-history.js';
import { joinStory } from '../trace/signal-story.js';

import { RecordedSignals } from './recorded-signals.js';
import { SignalsByPid } from './signals-by-pid.js';

/** Records that cross at once. */
const BATCH = 512;

/** The most that a recorder has of one process: see RecorderSlot. */
const MOST_SIGNALS = 128;

/** How long to keep a signal in the ring of exits whose process does not exit: to dump core takes time. */
const DEADLY_MS = 60 * 60 * 1000;

type Losses = ReturnType<NativeRecorder['losses']>;

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
  /** Those that may have ended a process, from the ring of exits. */
  readonly #deadly = new SignalsByPid();
  /** All others. */
  readonly #received: RecordedSignals;
  readonly #isTrusted: boolean;
  /** When letGo() was called. */
  #askedMs = performance.now();

  constructor(recorder: NativeRecorder) {
    this.#recorder = recorder;
    const about = recorder.about();
    this.#isTrusted = about?.isTrusted === true;
    this.#received = new RecordedSignals(recorder);
    this.#cgroups = new CgroupPaths((id) => recorder.cgroupPath(id));
    // A recorder works in the host's pid namespace only.
    const ids = new IdWriter(bootPrefix(bootId(), null));
    this.#records = new KernelRecords(BATCH, this.#cgroups, ids, about?.hasInodes === true);
  }

  /** Call this now and then. */
  readSignals(): void {
    this.#received.read();
  }

  /**
   * Lets go of signals that no exit needs. `sinceMs`: the next monitor, should it come now, would read exits that were read
   * since then; by performance.now().
   */
  letGo(sinceMs: number): void {
    // What has happened since the last call may not have been read yet.
    const atMs = Math.min(sinceMs, this.#askedMs);
    this.#askedMs = performance.now();
    this.#received.letGo(atMs);
    this.#deadly.letGo(atMs - DEADLY_MS, atMs - DEADLY_MS);
  }

  /** The exit of a watched process; `null` if none is recorded. */
  find(identity: ProcessIdentity): ExitEvent | null {
    const { pid, startTicks, inode } = identity;
    const { buffer } = this.#records;
    const count = this.#recorder.find(pid, startTicks, inode ?? 0, buffer, this.#kept.buffer);
    if (count === undefined) return null;
    const kept = Array.from({ length: count }, (_, i) => this.#kept.signal(i));
    // What it was sent was recorded before its exit.
    this.#received.read();
    const losses = this.#recorder.losses();
    const isWhole = kept.every(({ flags }) => (flags & SignalFlag.replaced) === 0);
    const event = this.#eventOf(0, { signals: kept, isWhole }, losses, losses.watched);
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
      this.#received.read();
      const losses = this.#recorder.losses();
      const nowMs = performance.now();
      let exitAt = 0;
      let signalAt = 0;
      for (let i = 0; i < count; i++) {
        const end = this.#ends[i] ?? 0;
        if (end < 0) {
          this.#deadly.add(this.#signals.signal(signalAt++), nowMs);
          continue;
        }
        const id = this.#records.exitId(exitAt);
        const event = isWanted(id) ? this.#ringEventOf(exitAt, losses) : null;
        const ended = this.#records.end(exitAt, { signal: null });
        this.#deadly.forget(ended);
        this.#received.end(ended);
        exits.push({ id, end, event });
        exitAt++;
      }
      if (exits.length > 0) return exits;
    }
  }

  #ringEventOf(index: number, losses: Losses): ExitEvent {
    const { pid } = this.#records.end(index, { signal: null });
    const deadly = { signals: this.#deadly.of(pid), isWhole: this.#deadly.isWhole(pid) };
    return this.#eventOf(index, deadly, losses, losses.exits);
  }

  /** `deadly`: what may have ended it. `lost`: what is missing where both it and its exit are from. */
  #eventOf(
    index: number,
    deadly: { signals: readonly TracedSignal[]; isWhole: boolean },
    losses: Losses,
    lost: NativeLoss,
  ): ExitEvent {
    const event = this.#records.exit(index);
    const end = this.#records.end(index, event);
    const others = this.#received.byPid;
    const isWhole = deadly.isWhole && others.isWhole(end.pid);
    if (!isWhole || overlaps(losses.signals, event) || overlaps(lost, event)) event.traced = false;
    if (lost === losses.exits && overlaps(lost, event)) event.lossless = false;
    let story = null;
    if (this.#isTrusted) {
      const history = new SignalHistory(this.#cgroups);
      for (const signal of inOrder([...deadly.signals, ...others.of(end.pid)])) {
        history.add({ ...signal, sentAtMs: wallClockOf(signal, event) });
      }
      story = history.end(end, false);
    }
    joinStory(event, story);
    const { requestsSince } = this.#received;
    if (event.tracedSince !== null && event.tracedSince < requestsSince) {
      event.requestsSince = requestsSince;
    }
    event.source = 'recorder';
    return event;
  }
}

/** A signal may be in a ring and in the table of watched processes. */
function inOrder(signals: TracedSignal[]): TracedSignal[] {
  const isSame = (a: TracedSignal, b: TracedSignal | undefined) =>
    a.timeNs === b?.timeNs && a.signal === b.signal && a.senderThread === b.senderThread;
  signals.sort((a, b) => a.timeNs - b.timeNs);
  return signals.filter((signal, i) => !isSame(signal, signals[i - 1]));
}

/** The machine may have been suspended since, or its clock set: the time of the exit allows for that. */
function wallClockOf(
  { timeNs, sentAtMs }: TracedSignal,
  { exitedAt, exitedNs }: ExitEvent,
): number {
  return exitedNs === null ? sentAtMs : exitedAt.getTime() - (exitedNs - timeNs) / 1e6;
}

/**
 * Whether something may have been lost while the process was traced. It is no longer known when the
 * loss began once it was acknowledged.
 */
function overlaps({ firstMs, lastMs }: NativeLoss, { tracedSince, exitedAt }: ExitEvent): boolean {
  if (lastMs === 0) return false;
  return lastMs + 1 >= (tracedSince?.getTime() ?? 0) && firstMs - 1 <= exitedAt.getTime();
}
