import { resolve } from 'node:path';

import { emitSafely } from '../common/emit-safely.js';
import { isObject } from '../common/is-object.js';
import { checkDate, invalidOption } from '../common/options.js';

import { ActiveSegment } from './active-segment.js';
import { type Clock, SYSTEM_CLOCK } from './clock.js';
import { JournalFolder } from './journal-folder.js';
import {
  type CheckedJournalOptions,
  checkJournalOptions,
  type JournalOptions,
} from './journal-options.js';
import { type Loss, LossNote } from './loss-note.js';
import { Packing } from './packing.js';
import { recover } from './recover.js';
import { MOST_BY_AGE, removeOldest } from './retention.js';
import { gapRow, joinLines, lossReasonOf, type QueuedRow, RowQueue } from './row-queue.js';
import { type JournalEvent, timeOf } from './rows.js';

/** How long an end may wait for the disk; and one by a signal, or what is no end. */
const ROW_MS = 1000;
const URGENT_MS = 10;

/** So many rows are written at once, even if they could wait. */
const MANY_ROWS = 4096;

/** How long after the start an end may be delivered again. */
const REPEATS_MS = 300_000;

const EVENTS: ReadonlySet<unknown> = new Set(['exit', 'gap', 'source', 'skipped']);

/**
 * Writes a journal: what ended, how, and who ended it, for later. Only one writer at a time can use a
 * directory. Rows are on disk within a second, and ends by a signal within 10 ms. If the disk is full,
 * the writer waits for room, gives up the oldest rows when there are too many, and writes a gap that
 * says how many.
 *
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export class JournalWriter implements AsyncDisposable {
  readonly #options: CheckedJournalOptions;
  #clock: Clock = SYSTEM_CLOCK;
  readonly #folder: JournalFolder;
  readonly #note: LossNote;
  readonly #packing: Packing;
  readonly #queue = new RowQueue();
  /** Ends that an earlier writer has written. */
  #known: Set<string>;
  readonly #knownUntilNs: number;
  /** Those of them that were delivered again. */
  #repeated: { id: string }[] = [];
  #active: ActiveSegment | null;
  #next: number;
  /** When the last row of earlier writers was, and in which boot; `null`: there is none. */
  readonly last: { at: Date; bootId: string | null } | null;
  #timer: NodeJS.Timeout | undefined;
  #dueMs = Infinity;
  #flushing: Promise<void> | undefined;
  #trouble: Error | null = null;
  /** How many segments may still go because of their age before another one begins. */
  #mostByAge = MOST_BY_AGE;
  /** The loss that is noted is in a row. */
  #isNoteDone = false;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  /**
   * Opens the journal, and cuts off what a crash has torn.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`, `ERR_EXITWATCH_IN_USE`,
   *   `ERR_EXITWATCH_STATE_DIR`
   */
  constructor(options: JournalOptions) {
    this.#options = checkJournalOptions(options);
    this.#knownUntilNs = this.#clock.monotonicNs() + REPEATS_MS * 1e6;
    this.#folder = new JournalFolder(resolve(this.#options.dir), this.#options.gid);
    let note;
    try {
      const { keeps } = this.#options;
      const { resumable, unpacked, next, last, ids, damaged } = recover(this.#folder, keeps);
      this.#known = ids;
      this.#next = next;
      this.last = last;
      this.#packing = new Packing(this.#folder, unpacked, () => {
        this.#removeOldest();
      });
      this.#note = note = new LossNote(this.#folder);
      this.#takeNote(note.read());
      this.#active =
        resumable === null
          ? null
          : ActiveSegment.resume(this.#folder, resumable.header, resumable.size);
      if (damaged !== null) this.append(damaged);
    } catch (error) {
      note?.close();
      this.#folder.close();
      throw this.#folder.error(error);
    }
  }

  /** A writer with other clocks. @internal */
  static withClock(options: JournalOptions, clock: Clock): JournalWriter {
    const writer = new JournalWriter(options);
    writer.#clock = clock;
    return writer;
  }

  /** Why rows cannot be written at the moment; `null`: they can. */
  get trouble(): Error | null {
    return this.#trouble;
  }

  /** How many rows wait for the disk. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Whether an earlier writer has written this end, which is delivered again. @internal */
  has(id: string): boolean {
    return this.#known.has(id);
  }

  /**
   * Takes an event; `onStored` says when it is on disk. An end that an earlier writer has written is not
   * written again. A journal that was closed takes nothing: a monitor may go on meanwhile.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`
   */
  append(event: JournalEvent): void {
    if (!isObject(event) || !EVENTS.has(event.event)) {
      throw invalidOption('append() requires an exit, gap, source or skipped event');
    }
    checkDate('the time of an event', timeOf(event));
    if (this.#isClosed) return;
    if (event.event === 'exit' && this.has(event.id)) this.#repeated.push({ id: event.id });
    else this.#queue.push(event, this.#trouble && lossReasonOf(this.#trouble));
    const isUrgent = event.event !== 'exit' || event.signal !== null;
    const isMany = this.#queue.length >= MANY_ROWS;
    if (this.#trouble !== null) this.#schedule(ROW_MS);
    else this.#schedule(isMany ? 0 : isUrgent ? URGENT_MS : ROW_MS);
  }

  /** Resolves when everything so far is on disk, or cannot be written: see {@link JournalWriter.trouble}. */
  async flush(): Promise<void> {
    await this.#flushing;
    await this.#flush();
  }

  /** Writes what there is, and closes the journal. What cannot be written was not stored. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    clearTimeout(this.#timer);
    await this.#packing.end();
    this.#active?.close();
    this.#note.close();
    this.#folder.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #takeNote(loss: Loss | null): void {
    if (loss === null) return;
    // The row was written, and the writer died before it could clear its note.
    if (loss.seq < this.#next) this.#isNoteDone = !this.#note.clear();
    else {
      this.#queue.putBack([], loss, 'not-written');
      this.#schedule(0);
    }
  }

  #schedule(afterMs: number): void {
    const dueMs = this.#clock.monotonicNs() / 1e6 + afterMs;
    if (this.#timer !== undefined && dueMs >= this.#dueMs) return;
    clearTimeout(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      // While one is running, its end looks for what came meanwhile.
      if (this.#flushing === undefined) void this.#flush();
    }, afterMs);
  }

  #flush(): Promise<void> {
    this.#flushing ??= this.#flushAll().finally(() => {
      this.#flushing = undefined;
      const isLeft = this.#queue.length > 0 || this.#queue.loss !== null;
      if (isLeft && !this.#isClosed && this.#timer === undefined) {
        this.#schedule(this.#trouble === null ? URGENT_MS : ROW_MS);
      }
    });
    return this.#flushing;
  }

  /** Never rejects. */
  async #flushAll(): Promise<void> {
    const repeated = this.#repeated.splice(0);
    if (repeated.length > 0) this.#tell(repeated);
    const { loss, dropped } = this.#queue.takeDropped();
    const rows = this.#queue.take();
    if (rows.length > 0 || loss !== null) {
      let failure: unknown = null;
      try {
        await this.#write(loss === null ? rows : [gapRow(loss), ...rows]);
      } catch (error) {
        failure = error;
      }
      if (failure === null) {
        this.#isNoteDone ||= loss !== null;
        this.#setTrouble(null);
        this.#tellStored([...dropped, ...rows]);
      } else {
        this.#setTrouble(this.#folder.error(failure));
        this.#queue.putBack(rows, loss, lossReasonOf(failure));
        this.#isNoteDone = false;
        this.#noteLoss(dropped);
      }
    }
    if (this.#known.size > 0 && this.#clock.monotonicNs() > this.#knownUntilNs) {
      this.#known = new Set();
    }
    if (this.#isNoteDone && this.#trouble === null) this.#isNoteDone = !this.#note.clear();
    if (this.#trouble === null) this.#packing.next();
  }

  async #write(rows: readonly QueuedRow[]): Promise<void> {
    const active = this.#segment();
    const { lines, sizes } = joinLines(rows, this.#next);
    await active.append(lines);
    this.#next += rows.length;
    if (active.summary === null) return;
    for (const [i, row] of rows.entries()) active.summary.add(row, sizes[i] ?? 0);
  }

  /** The segment for the next row. */
  #segment(): ActiveSegment {
    const { segmentBytes, segmentMs } = this.#options;
    const active = this.#active;
    if (active !== null) {
      if (active.size < segmentBytes && active.ageMs(this.#clock) < segmentMs) return active;
      active.close();
      this.#active = null;
      // Without a row, the next segment has its number, and so its name.
      if (this.#next > active.first) this.#packing.add(active.first, active.summary);
    }
    const header = { first: this.#next, keeps: this.#options.keeps };
    this.#active = ActiveSegment.begin(this.#folder, header, this.#clock);
    this.#mostByAge = MOST_BY_AGE;
    this.#removeOldest();
    return this.#active;
  }

  #removeOldest(): void {
    if (this.#isClosed) return;
    const { keep } = this.#options;
    const active = this.#active?.first ?? null;
    this.#mostByAge -= removeOldest(this.#folder, keep, active, this.#clock.now(), this.#mostByAge);
  }

  /** Before the ends are done with: if we die, the next writer tells of them. */
  #noteLoss(droppedBefore: readonly QueuedRow[]): void {
    const { loss } = this.#queue;
    const dropped = [...droppedBefore, ...this.#queue.forgetDropped()];
    if (loss === null || dropped.length === 0) return;
    try {
      this.#note.set({ ...loss, seq: this.#next });
    } catch {
      // Nothing can be written. Then only our own memory has the number.
    }
    this.#tellStored(dropped);
  }

  #tellStored(rows: readonly QueuedRow[]): void {
    const exits = rows.flatMap(({ id }) => (id === null ? [] : [{ id }]));
    if (exits.length > 0) this.#tell(exits);
  }

  #tell(exits: { id: string }[]): void {
    emitSafely(() => {
      this.#options.onStored(exits);
    });
  }

  #setTrouble(error: Error | null): void {
    const hasChanged = (error === null) !== (this.#trouble === null);
    this.#trouble = error;
    if (hasChanged) this.#options.onTrouble(error);
  }
}
