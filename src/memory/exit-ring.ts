import type { ExitEvent, Gap } from '../events/exit-event.js';
import type { NativeLoss, NativeRecorder } from '../native/addon.js';

import type { RecordedExits, RingExit } from './recorded-exits.js';

/** How long the live stream may take to report an exit that is in the ring, if it delays none. */
const LIVE_PATIENCE_MS = 2000;

/** How long to remember an exit that only one of both has reported. */
const MEMORY_MS = 30_000;

/**
 * For how long to compare what was lost with the live stream, which reports an exit a little later, and how often.
 * While the ring is full, there is always one on its way.
 */
const COMPARISON_MS = 4000;
export const COMPARE_EACH_MS = 100;

/** A recorder with its reader. */
export interface Recording {
  recorder: NativeRecorder;
  exits: RecordedExits;
}

/** An exit in a ring that was not committed yet. */
interface Pending {
  id: string;
  end: number;
  isCommitted: boolean;
  /** When the ring was read before: it exited later, but for what the ring held at first. By performance.now(). */
  afterMs: number;
  /** Until when it waits for the live stream, by performance.now(); 0: it was delivered. */
  waitsUntil: number;
  event: ExitEvent | null;
  /** The same exit in the ring of an older recorder. */
  twin: Pending | undefined;
}

interface Ring extends Recording {
  /** In the order of the ring. */
  pending: Pending[];
}

/**
 * The exits of all processes that recorders have in their rings, joined with the live stream: each
 * is delivered once. Exits of now are left to the live stream for a while, which reports them when
 * their processes are really gone.
 */
export class ExitRing {
  /** The oldest recorder first. */
  #rings: readonly Ring[];
  readonly #patienceMs: number;
  readonly #mostComparisons: number;
  readonly #byId = new Map<string, Pending>();
  /** Delivered live, and not yet found in the ring; the value: committed, and when it came, by performance.now(). */
  readonly #live = new Map<string, { isCommitted: boolean; at: number }>();
  /** Delivered from the ring: the live stream may report them, too. */
  readonly #recorded = new Map<string, number>();
  /** Committed, and gone from one ring while there are others, which may have been read before they had them. */
  readonly #committed = new Map<string, number>();
  #isMarked = false;
  #comparisons = 0;
  #leastLost = Infinity;
  /** When the rings were last read, by performance.now(). */
  #readMs = performance.now();
  /** Until when a gap has told what was lost. */
  #toldUntil = 0;

  /** `maxDelayMs`: how long the live stream may hold an exit back, so that it comes with others. */
  constructor(recordings: readonly Recording[], maxDelayMs: number) {
    this.#rings = recordings.map((each) => ({ ...each, pending: [] }));
    this.#patienceMs = LIVE_PATIENCE_MS + maxDelayMs;
    this.#mostComparisons = Math.ceil((COMPARISON_MS + maxDelayMs) / COMPARE_EACH_MS);
  }

  /** What the rings hold and nobody has delivered, in order, if `isDue`. */
  drain(isDue: (event: ExitEvent) => boolean): ExitEvent[] {
    this.#read();
    const due = this.#take((_, event) => isDue(event));
    this.#forget(performance.now() - MEMORY_MS);
    return due;
  }

  /** What the live stream should have reported by now. Call this about each second. */
  missed(isDue: (event: ExitEvent) => boolean): ExitEvent[] {
    this.#read();
    const now = performance.now();
    const missed = this.#take(({ waitsUntil }, event) => waitsUntil <= now && isDue(event));
    this.#forget(now - MEMORY_MS);
    return missed;
  }

  /** The live stream reports an exit. Returns whether to deliver it. */
  onLive({ id, isRepeated }: ExitEvent): boolean {
    if (this.#recorded.delete(id)) return false;
    // What the ring has by now may have been delivered, if we are killed before it is committed.
    if (!this.#isMarked) {
      for (const { recorder } of this.#rings) recorder.setDelivered(recorder.ringEnd());
      this.#isMarked = true;
    }
    const pending = this.#byId.get(id);
    if (pending !== undefined) markDelivered(pending);
    else if (!isRepeated) this.#live.set(id, { isCommitted: false, at: performance.now() });
    return true;
  }

  /** The batch of the live stream has ended. */
  batchEnd(): void {
    this.#isMarked = false;
  }

  /** The reader of this exit has stored it. */
  commit(id: string): void {
    const live = this.#live.get(id);
    if (live !== undefined) live.isCommitted = true;
    const pending = this.#byId.get(id);
    if (pending === undefined) return;
    for (let each: Pending | undefined = pending; each !== undefined; each = each.twin) {
      each.isCommitted = true;
    }
    this.#advance();
  }

  /** After which time the oldest exit came that is not committed, by performance.now(); `null`: all are. */
  uncommittedSince(recorder: NativeRecorder): number | null {
    const ring = this.#rings.find((each) => each.recorder === recorder);
    return ring?.pending[0]?.afterMs ?? null;
  }

  /** Whether all that this recorder has in its ring is committed. */
  isDone(recorder: NativeRecorder): boolean {
    return this.#rings.every((ring) => ring.recorder !== recorder || ring.pending.length === 0);
  }

  /** The recorder is about to be closed. */
  remove(recorder: NativeRecorder): void {
    this.#rings = this.#rings.filter((ring) => ring.recorder !== recorder);
  }

  /** Exits that did not fit, and were not reported yet; `null`: none. */
  loss(): Gap | null {
    const losses = this.#rings.map(({ recorder }) => recorder.losses().exits);
    return gapOf(losses, this.#toldUntil);
  }

  /** Whether it is not known yet what the live stream has not delivered: look each {@link COMPARE_EACH_MS}. */
  isComparing(): boolean {
    return this.#comparisons < this.#mostComparisons;
  }

  /**
   * The same of the time until the live stream began. It has delivered what did not fit since then.
   * Call this after {@link missed}, as long as it {@link isComparing}: the answer comes once, at the end.
   */
  lossBeforeLive(): Gap | null {
    if (!this.isComparing()) return null;
    const loss = this.loss();
    this.#leastLost = Math.min(this.#leastLost, (loss?.lost ?? 0) - this.#live.size);
    this.#comparisons++;
    if (this.isComparing() || loss === null || this.#leastLost <= 0) return null;
    return { ...loss, lost: this.#leastLost };
  }

  /** The gap was delivered. */
  lossReported({ lost, to }: Gap): void {
    this.#acknowledge(lost ?? 0);
    this.#toldUntil = to.getTime();
  }

  /** The live stream has delivered the rest of what did not fit. */
  close(): void {
    this.#read();
    this.#forget(Infinity);
  }

  #acknowledge(count: number): void {
    if (count === 0) return;
    for (const { recorder } of this.#rings) recorder.acknowledgeLoss(count);
  }

  #read(): void {
    const nowMs = performance.now();
    for (const ring of this.#rings) {
      const delivered = ring.recorder.delivered();
      const next = () => ring.exits.readRing(this.#isNew);
      for (let exits = next(); exits.length > 0; exits = next()) {
        for (const exit of exits) {
          if (exit.event !== null) exit.event.isRepeated = exit.end <= delivered;
          const pending = this.#pendingOf(exit);
          ring.pending.push(pending);
          this.#byId.set(exit.id, pending);
        }
      }
    }
    this.#readMs = nowMs;
    this.#advance();
  }

  /** Whether this exit has not been delivered, and was not found in a ring before. */
  readonly #isNew = (id: string): boolean =>
    !this.#live.has(id) && !this.#byId.has(id) && !this.#wasInAnother(id);

  #wasInAnother(id: string): boolean {
    return this.#recorded.has(id) || this.#committed.has(id);
  }

  #pendingOf({ id, end, event }: RingExit): Pending {
    const twin = this.#byId.get(id);
    const live = this.#live.get(id);
    this.#live.delete(id);
    const afterMs = this.#readMs;
    const done = { id, end, afterMs, waitsUntil: 0, event: null, twin };
    if (twin !== undefined || live !== undefined) {
      return { ...done, isCommitted: (twin ?? live)?.isCommitted === true };
    }
    // Another recorder had it, too, and it was committed since.
    if (this.#wasInAnother(id)) return { ...done, isCommitted: true };
    return { ...done, isCommitted: false, waitsUntil: performance.now() + this.#patienceMs, event };
  }

  #take(isDue: (pending: Pending, event: ExitEvent) => boolean): ExitEvent[] {
    const due: ExitEvent[] = [];
    for (const { recorder, pending } of this.#rings) {
      for (const each of pending) {
        if (each.event === null || !isDue(each, each.event)) continue;
        due.push(each.event);
        markDelivered(each);
        this.#recorded.set(each.id, performance.now());
        recorder.setDelivered(each.end);
      }
    }
    // Two processors may write in another order than they took the time.
    return due.sort((a, b) => (a.exitedNs ?? 0) - (b.exitedNs ?? 0));
  }

  #advance(): void {
    for (const ring of this.#rings) {
      let count = 0;
      while (ring.pending[count]?.isCommitted === true) count++;
      if (count === 0) continue;
      const done = ring.pending.splice(0, count);
      for (const pending of done) {
        if (this.#byId.get(pending.id) !== pending) continue;
        this.#byId.delete(pending.id);
        if (this.#rings.length > 1) this.#committed.set(pending.id, performance.now());
      }
      ring.recorder.commitRing(done.at(-1)?.end ?? 0);
    }
  }

  /** Exits that the ring had no room for, and those that the live stream never reported. */
  #forget(before: number): void {
    let committed = 0;
    for (const [id, { at, isCommitted }] of this.#live) {
      if (at >= before) break;
      this.#live.delete(id);
      if (isCommitted) committed++;
    }
    this.#acknowledge(committed);
    for (const delivered of [this.#recorded, this.#committed]) {
      for (const [id, at] of delivered) {
        if (at >= before) break;
        delivered.delete(id);
      }
    }
  }
}

function gapOf(losses: readonly NativeLoss[], toldUntil: number): Gap | null {
  let lost = 0;
  let from = Infinity;
  let to = 0;
  for (const { count, firstMs, lastMs } of losses) {
    if (count === 0) continue;
    lost += count;
    from = Math.min(from, Math.floor(firstMs || toldUntil || lastMs));
    to = Math.max(to, Math.ceil(lastMs));
  }
  if (lost === 0) return null;
  const [first, last] = [new Date(from), new Date(to)];
  return { event: 'gap', from: first, to: last, lost, reason: 'recorder-full', recovered: 0 };
}

function markDelivered(pending: Pending): void {
  for (let each: Pending | undefined = pending; each !== undefined; each = each.twin) {
    each.event = null;
    each.waitsUntil = 0;
  }
}
