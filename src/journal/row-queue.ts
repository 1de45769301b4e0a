import { factsOf, type RowFacts } from './row-facts.js';
import { type Piece, pieceOf } from './row-texts.js';
import { eventText, type JournalEvent, type JournalGap, rowStart } from './rows.js';

/** An event that is not on disk yet: its text, and what is needed of it besides. */
export interface QueuedRow extends RowFacts {
  /** Its line without the beginning, which has its number. */
  rest: Piece;
  /** Of an end. */
  id: string | null;
  exitedNs: number | null;
  /** How many ends it stands for; `null`: nobody knows. */
  ends: number | null;
}

/** What was given up because there was no room. */
export interface Dropped {
  from: number;
  to: number;
  /** `null`: a gap of unknown size among them. */
  lost: number | null;
  reason: LossReason;
}

/** Why rows do not reach the disk; `'not-written'` if it is not full. */
export type LossReason = Extract<JournalGap['reason'], 'disk-full' | 'not-written'>;

export function lossReasonOf(error: unknown): LossReason {
  const { code, cause } = error as NodeJS.ErrnoException;
  const codes = [code, (cause as NodeJS.ErrnoException | undefined)?.code];
  return codes.some((each) => each === 'ENOSPC' || each === 'EDQUOT') ? 'disk-full' : 'not-written';
}

/** Most rows to hold while the disk is slow, at about 1 KiB each. */
const MOST = 262_144;

/**
 * The same while the disk is full. A recorder in the kernel has room for more (22,000 by default), so that
 * nothing is lost there meanwhile.
 */
const MOST_IN_TROUBLE = 16_384;

/** So many rows that are no ends are not given up with the others: what is missing, and what was counted. */
const MOST_OTHERS = 1024;

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

  /** `trouble`: why rows cannot be written now; `null`: they can. */
  push(event: JournalEvent, trouble: LossReason | null): void {
    this.#rows.push(rowOf(event));
    const most = trouble === null ? MOST : MOST_IN_TROUBLE;
    if (this.#rows.length > most) this.#drop(most, trouble ?? 'not-written');
  }

  take(): QueuedRow[] {
    const rows = this.#rows;
    this.#rows = [];
    return inOrder(rows);
  }

  /** They could not be written, nor could what was given up before them be told. */
  putBack(rows: readonly QueuedRow[], loss: Dropped | null, trouble: LossReason): void {
    if (loss !== null) this.#addLoss(loss);
    this.#rows = [...rows, ...this.#rows];
    if (this.#rows.length > MOST_IN_TROUBLE) this.#drop(MOST_IN_TROUBLE, trouble);
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
  #drop(most: number, reason: LossReason): void {
    const kept: QueuedRow[] = [];
    for (const row of this.#rows.splice(0, this.#rows.length - Math.floor(most * 0.9))) {
      if (row.id === null && kept.length < MOST_OTHERS) {
        kept.push(row);
        continue;
      }
      this.#dropped.push(row);
      this.#addLoss({ from: row.from, to: row.to, lost: row.ends, reason });
    }
    this.#rows = [...kept, ...this.#rows];
  }

  #addLoss({ from, to, lost, reason }: Dropped): void {
    const before = this.#loss ?? { from, to, lost: 0, reason };
    this.#loss = {
      from: Math.min(from, before.from),
      to: Math.max(to, before.to),
      lost: before.lost === null || lost === null ? null : before.lost + lost,
      reason: before.reason === reason ? reason : 'not-written',
    };
  }
}

/** The row that tells of it. */
export function gapRow({ from, to, lost, reason }: Dropped): QueuedRow {
  const event: JournalGap = {
    event: 'gap',
    from: new Date(from),
    to: new Date(to),
    lost,
    reason,
    recovered: 0,
  };
  return rowOf(event);
}

/** The lines of rows, the first of which has this number, and how many bytes each has. */
export function joinLines(
  rows: readonly QueuedRow[],
  first: number,
): { lines: Buffer; sizes: number[] } {
  const starts = rows.map((_, i) => rowStart(first + i));
  const sizes = rows.map(({ rest }, i) => (starts[i]?.length ?? 0) + rest.end - rest.start);
  const lines = Buffer.allocUnsafe(sizes.reduce((sum, size) => sum + size, 0));
  let at = 0;
  for (const [i, { rest }] of rows.entries()) {
    at += lines.write(starts[i] ?? '', at, 'latin1');
    at += rest.chunk.copy(lines, at, rest.start, rest.end);
  }
  return { lines, sizes };
}

function rowOf(event: JournalEvent): QueuedRow {
  const { from, to, found } = factsOf(event);
  const [id, exitedNs] = event.event === 'exit' ? [event.id, event.exitedNs] : [null, null];
  return { rest: pieceOf(eventText(event)), from, to, found, id, exitedNs, ends: endsIn(event) };
}

function endsIn(event: JournalEvent): number | null {
  switch (event.event) {
    case 'exit':
      return 1;
    case 'skipped':
      return event.count;
    case 'gap':
      return event.lost;
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
  const keys = rows.map(({ exitedNs }) => {
    const ns = exitedNs ?? latest;
    latest = Math.max(latest, ns);
    return ns;
  });
  if (keys.every((ns, i) => ns >= (keys[i - 1] ?? -Infinity))) return rows;
  const keyed = rows.map((row, i) => ({ row, ns: keys[i] ?? 0 }));
  return keyed.sort((a, b) => a.ns - b.ns).map(({ row }) => row);
}
