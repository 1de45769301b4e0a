import { eventText, type JournalEvent, type JournalGap, timeOf } from './rows.js';

/** An event that is not on disk yet. */
export interface QueuedRow {
  event: JournalEvent;
  json: string;
}

/** What was given up because there was no room. */
export interface Dropped {
  from: number;
  to: number;
  lost: number;
}

/** Most rows to hold while the disk is slow, at about 1 KiB each. */
const MOST = 262_144;

/**
 * The same while the disk is full. A recorder in the kernel has room for more (22,000 by default), so that
 * nothing is lost there meanwhile.
 */
const MOST_IN_TROUBLE = 16_384;

/** Rows on their way to the disk, in their order. */
export class RowQueue {
  #rows: QueuedRow[] = [];
  /** Was given up, and nobody has been told. */
  #dropped: QueuedRow[] = [];
  #loss: Dropped | null = null;

  get length(): number {
    return this.#rows.length;
  }

  /** What was given up, and not told yet. */
  get loss(): Dropped | null {
    return this.#loss;
  }

  push(event: JournalEvent, isInTrouble: boolean): void {
    this.#rows.push({ event, json: eventText(event) });
    const most = isInTrouble ? MOST_IN_TROUBLE : MOST;
    if (this.#rows.length > most) this.#drop(most);
  }

  take(): QueuedRow[] {
    const rows = this.#rows;
    this.#rows = [];
    return inOrder(rows);
  }

  /** They could not be written, nor could what was given up before them be told. */
  putBack(rows: readonly QueuedRow[], loss: Dropped | null): void {
    if (loss !== null) this.#addLoss(loss);
    this.#rows = [...rows, ...this.#rows];
    if (this.#rows.length > MOST_IN_TROUBLE) this.#drop(MOST_IN_TROUBLE);
  }

  /** What was given up: the sum, which is about to be told, and the rows. */
  takeDropped(): { loss: Dropped | null; dropped: QueuedRow[] } {
    const loss = this.#loss;
    this.#loss = null;
    return { loss, dropped: this.forgetDropped() };
  }

  /** The rows alone; the sum remains to be told. */
  forgetDropped(): QueuedRow[] {
    const dropped = this.#dropped;
    this.#dropped = [];
    return dropped;
  }

  /** The oldest ones, some at a time. */
  #drop(most: number): void {
    for (const row of this.#rows.splice(0, this.#rows.length - Math.floor(most * 0.9))) {
      this.#dropped.push(row);
      const { event } = row;
      const to = timeOf(event).getTime();
      const from = event.event === 'gap' || event.event === 'skipped' ? event.from.getTime() : to;
      this.#addLoss({ from, to, lost: countOf(event) });
    }
  }

  #addLoss({ from, to, lost }: Dropped): void {
    const before = this.#loss ?? { from, to, lost: 0 };
    this.#loss = {
      from: Math.min(from, before.from),
      to: Math.max(to, before.to),
      lost: before.lost + lost,
    };
  }
}

/** The row that tells of it. */
export function gapRow({ from, to, lost }: Dropped): QueuedRow {
  const event: JournalGap = {
    event: 'gap',
    from: new Date(from),
    to: new Date(to),
    lost,
    reason: 'disk-full',
    recovered: 0,
  };
  return { event, json: JSON.stringify(event) };
}

/** How many ends it stands for. */
function countOf(event: JournalEvent): number {
  switch (event.event) {
    case 'exit':
      return 1;
    case 'skipped':
      return event.count;
    case 'gap':
      return event.lost ?? 0;
    case 'source':
      return 0;
  }
}

/**
 * Ends in the order of the kernel's time stamps, because those of several CPUs and of a recorder come
 * in others. Everything else keeps its place.
 */
function inOrder(rows: QueuedRow[]): QueuedRow[] {
  let latest = -Infinity;
  const keyed = rows.map((row) => {
    const ns = (row.event.event === 'exit' ? row.event.exitedNs : null) ?? latest;
    latest = Math.max(latest, ns);
    return { row, ns };
  });
  const isInOrder = keyed.every(({ ns }, i) => ns >= (keyed[i - 1]?.ns ?? -Infinity));
  return isInOrder ? rows : keyed.sort((a, b) => a.ns - b.ns).map(({ row }) => row);
}
