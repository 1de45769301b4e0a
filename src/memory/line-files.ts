import { rmSync } from 'node:fs';
import { join } from 'node:path';

import type { StateFolder } from './state-folder.js';

/**
 * Files of a folder that grow by a line with each change, which takes far less than to replace them. A line
 * is on disk when a call returns, unless it is not synced: then only a power failure may take it along. One
 * that a crash has torn is left out.
 */
export class LineFiles {
  readonly #folder: StateFolder;
  readonly #mostLines: number;
  /** How many lines each file has that can be appended to; the others are replaced. */
  readonly #lines = new Map<string, number>();

  /** @param mostLines of a file; one that has so many is replaced by the next change */
  constructor(folder: StateFolder, mostLines: number) {
    this.#folder = folder;
    this.#mostLines = mostLines;
  }

  /**
   * The lines of a file; `null`: there is none.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`
   */
  read(name: string): string[] | null {
    const text = this.#folder.read(name);
    if (text === null) return null;
    const lines = text.split('\n');
    const last = lines.pop() ?? '';
    if (last === '') this.#lines.set(name, lines.length);
    return lines.length === 0 ? [last] : lines; // the first one is never torn: a file begins as a whole
  }

  /**
   * Appends a line.
   *
   * @param all what the file has instead if it is replaced
   * @param isSynced whether it is on disk when this returns
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`; then it is not known whether the line is there
   */
  append(name: string, line: string, all: () => readonly string[], isSynced = true): void {
    const lines = this.#lines.get(name) ?? this.#mostLines;
    this.#lines.delete(name);
    if (lines >= this.#mostLines || !this.#folder.append(name, `${line}\n`, isSynced)) {
      this.replace(name, all());
      return;
    }
    this.#lines.set(name, lines + 1);
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR` */
  replace(name: string, lines: readonly string[]): void {
    this.#lines.delete(name);
    this.#folder.replace(name, lines.map((line) => `${line}\n`).join(''));
    this.#lines.set(name, lines.length);
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR` */
  remove(name: string): void {
    this.#lines.delete(name);
    try {
      rmSync(join(this.#folder.path, name), { force: true });
      this.#folder.sync();
    } catch (error) {
      throw this.#folder.error(error);
    }
  }
}
