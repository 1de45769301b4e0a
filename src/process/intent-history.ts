import { ExitwatchError } from '../common/errors.js';

import { intentFilesOf, type IntentFile } from './intent-files.js';
import { readIntents, type Intent } from './intent-log.js';

/** How long after `begunAt` a log may have been made that goes back to it. */
const MAKING_MS = 60_000;

/** Reads an intent log again and again, and knows if some of it was lost meanwhile. */
export class IntentHistory {
  readonly path: string;
  readonly #begunAt: Date | null;
  /** The file that was written to when the log was last read. */
  #last: IntentFile | undefined;
  #lostUntil = -Infinity;

  /** `begunAt`: when the log was made, if that is known. */
  constructor(path: string, begunAt: Date | null = null) {
    this.path = path;
    this.#begunAt = begunAt;
  }

  /** Notes what is there, so that its loss is noticed. Never rejects: a read tells what is wrong. */
  async note(): Promise<void> {
    await this.#look().catch(() => undefined);
  }

  /**
   * The intents of the log and of what rotation has left beside it: all since that time.
   *
   * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_INTENT_LOG`, also if some are lost.
   */
  async read(since: Date): Promise<Intent[]> {
    const intents = await readIntents(this.path);
    await this.#look();
    if (this.#lostUntil < since.getTime()) return intents;
    const until = new Date(this.#lostUntil).toISOString();
    throw new ExitwatchError(
      'ERR_EXITWATCH_INTENT_LOG',
      `the intent log ${JSON.stringify(this.path)} may lack intents from before ${until}: it was removed, or rotated and compressed`,
    );
  }

  async #look(): Promise<void> {
    const { files, lostUntil } = await intentFilesOf(this.path);
    const lose = (until: Date) => {
      this.#lostUntil = Math.max(this.#lostUntil, until.getTime());
    };
    if (lostUntil !== null) lose(lostUntil);
    const last = this.#last;
    // It was compressed or removed: what is newer has all since then.
    if (last !== undefined && !files.some(({ id }) => id === last.id)) {
      const newer = files.filter((file) => birthOf(file) > birthOf(last));
      lose(new Date(Math.min(...newer.map(birthOf), Date.now())));
    }
    this.#last = files.at(-1);
    // A log that is rotated is as young as its first intent since then.
    if (this.#begunAt === null || lostUntil !== null || files.length > 1) return;
    // A file system that does not tell the age of a file cannot tell of a loss either.
    const bornAt = Math.min(...files.map(birthOf), Date.now());
    if (bornAt > this.#begunAt.getTime() + MAKING_MS) lose(new Date(bornAt));
  }
}

/** In ms; -Infinity if it is unknown. */
function birthOf({ bornAt }: IntentFile): number {
  return bornAt?.getTime() ?? -Infinity;
}
