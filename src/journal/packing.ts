import type { JournalFolder } from './journal-folder.js';
import { packSegment } from './pack-segment.js';
import type { SegmentSummary } from './segment-index.js';

/** How long to wait after a failure: there may be no room. */
const RETRY_MS = 60_000;

/** Compresses complete segments, one at a time, while the journal is being written. */
export class Packing {
  readonly #folder: JournalFolder;
  readonly #waiting = new Map<number, SegmentSummary | null>();
  readonly #onPacked: () => void;
  #running: Promise<void> | undefined;
  #notBefore = 0;
  #isEnding = false;

  /** `onPacked`: the journal has become smaller. */
  constructor(folder: JournalFolder, unpacked: readonly number[], onPacked: () => void) {
    this.#folder = folder;
    this.#onPacked = onPacked;
    for (const first of unpacked) this.#waiting.set(first, null);
  }

  add(first: number, summary: SegmentSummary | null): void {
    this.#waiting.set(first, summary);
  }

  /** Goes on with it, if there is something to do. */
  next(): void {
    if (this.#running !== undefined || this.#isEnding || performance.now() < this.#notBefore)
      return;
    const [oldest] = this.#waiting;
    if (oldest === undefined) return;
    this.#running = this.#pack(...oldest).finally(() => {
      this.#running = undefined;
      this.next();
    });
  }

  /** Stops; the rest remains to be done by a later writer. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#running;
  }

  async #pack(first: number, summary: SegmentSummary | null): Promise<void> {
    try {
      await packSegment(this.#folder, first, summary, () => this.#isEnding);
      this.#waiting.delete(first);
      this.#onPacked();
    } catch (error) {
      this.#waiting.delete(first);
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return; // it was too old
      this.#waiting.set(first, summary); // after the others, which may be in order
      this.#notBefore = performance.now() + RETRY_MS;
    }
  }
}
