import { GrowingFile } from '../evidence/growing-file.js';
import type { ObeyedSignal } from '../evidence/vm-evidence.js';

import { obeyedSignal } from './obeyed-signal.js';
import { isSince } from './since.js';

/** Lines to keep: what QEMU says about its end comes last. */
const MOST_LINES = 100;

/** For people. */
const MOST_WORDS = 5;

/** The log (`-D`) of a QEMU: which signal it obeyed, and its last lines. */
export class QemuLog {
  readonly file: GrowingFile;
  readonly #lines: string[] = [];

  /** Skips everything before `from`: it is another start's. */
  constructor(path: string, from = 0) {
    const keep = (line: string) => {
      this.#lines.push(line);
      if (this.#lines.length > MOST_LINES) this.#lines.shift();
    };
    this.file = new GrowingFile(path, keep, from);
  }

  /** Reads new lines. Resolves with true if the file exists and was read completely. */
  read(): Promise<boolean> {
    return this.file.read();
  }

  /** The signal that it obeyed; `null`: the log names none, or is an earlier start's. */
  obeyed(startedAt: Date | null): ObeyedSignal | null {
    return this.#isOf(startedAt) ? obeyedSignal(this.#lines) : null;
  }

  lastWords(startedAt: Date | null): string[] {
    return this.#isOf(startedAt) ? this.#lines.slice(-MOST_WORDS) : [];
  }

  /** A log that an earlier start has left says nothing about this one. */
  #isOf(startedAt: Date | null): boolean {
    const writtenAt = this.file.modifiedAt?.getTime() ?? -Infinity;
    return isSince(new Date(writtenAt), startedAt);
  }
}
