import { GrowingFile } from '../evidence/growing-file.js';
import type { ObeyedSignal } from '../evidence/vm-evidence.js';

import { obeyedSignal } from './obeyed-signal.js';
import { isSince } from './since.js';

/** Of a log; what it says of its end comes at its end. */
const MOST_LINES = 100;

/** For people. */
const MOST_WORDS = 5;

/** The log (`-D`) of a QEMU: which signal it has obeyed, and what it said at last. */
export class QemuLog {
  readonly file: GrowingFile;
  readonly #lines: string[] = [];

  /** `from`: what comes before that is another's. */
  constructor(path: string, from = 0) {
    const keep = (line: string) => {
      this.#lines.push(line);
      if (this.#lines.length > MOST_LINES) this.#lines.shift();
    };
    this.file = new GrowingFile(path, keep, from);
  }

  /** Reads what is new. Resolves with whether there is such a file, and all of it could be read. */
  read(): Promise<boolean> {
    return this.file.read();
  }

  /** What it has obeyed; `null`: it does not say so, or the log is an earlier start's. */
  obeyed(startedAt: Date | null): ObeyedSignal | null {
    return this.#isOf(startedAt) ? obeyedSignal(this.#lines) : null;
  }

  lastWords(startedAt: Date | null): string[] {
    return this.#isOf(startedAt) ? this.#lines.slice(-MOST_WORDS) : [];
  }

  /** A log that an earlier start has left says nothing of this one. */
  #isOf(startedAt: Date | null): boolean {
    const writtenAt = this.file.modifiedAt?.getTime() ?? -Infinity;
    return isSince(new Date(writtenAt), startedAt);
  }
}
