import { ExitwatchError } from '../common/errors.js';

import { intentFilesOf } from './intent-files.js';
import { readIntents, type Intent } from './intent-log.js';

/** How long after `begunAt` a log may have been made that goes back to it. */
const MAKING_MS = 60_000;

/** Reads an intent log again and again, and knows if some of it was lost meanwhile. */
export class IntentHistory {
  readonly path: string;
  readonly #begunAt: Date | null;
  /** The log's files when it was last read. */
  #seen: string[] = [];
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
    // A file system that does not tell the age of a file cannot tell of a loss either.
    const births = files.map(({ bornAt }) => bornAt?.getTime() ?? -Infinity);
    const bornAt = Math.min(...births, Date.now());
    const newest = this.#seen.at(-1);
    const ids = files.map(({ id }) => id);
    // What it had is older than what is there. An older one that is gone was removed when it was too old to matter.
    if (newest !== undefined && !ids.includes(newest)) {
      lose(bornAt === -Infinity ? new Date() : new Date(bornAt));
    }
    this.#seen = ids;
    // A log that is rotated is as young as its first intent since then.
    if (this.#begunAt === null || lostUntil !== null || files.length > 1) return;
    if (bornAt > this.#begunAt.getTime() + MAKING_MS) lose(new Date(bornAt));
  }
}
