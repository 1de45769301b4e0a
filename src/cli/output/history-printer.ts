import { once } from 'node:events';

import type { JournalRow } from '../../journal/index.js';

import { toJsonLine } from './escape.js';
import { ExitTable } from './exit-table.js';
import { columnsOf } from './terminal-text.js';

/** Prints rows of a journal, as JSON or as a table. */
export class HistoryPrinter {
  readonly #asJson: boolean;
  readonly #table: ExitTable;
  #hasBegun = false;

  constructor(asJson: boolean) {
    this.#asJson = asJson;
    const colored = process.stdout.isTTY && !process.env['NO_COLOR'];
    // So that the first row has its day.
    this.#table = new ExitTable(colored, () => columnsOf(process.stdout), new Date(0));
  }

  /** Waits for a slow reader. */
  async print(row: JournalRow, signal: AbortSignal): Promise<void> {
    if (row.event === 'exit' && row.commandLine !== null) this.#table.expectCommands();
    const before = this.#hasBegun || this.#asJson ? '' : `${this.#table.header()}\n`;
    this.#hasBegun = true;
    if (process.stdout.write(`${before}${this.#asJson ? toJsonLine(row) : this.#text(row)}\n`))
      return;
    await once(process.stdout, 'drain', { signal }).catch(() => undefined);
  }

  #text(row: JournalRow): string {
    switch (row.event) {
      case 'exit':
        return this.#table.exit(row);
      case 'gap':
        return this.#table.gap(row);
      case 'source':
        return this.#table.source(row);
      case 'skipped':
        return this.#table.skipped(row);
    }
  }
}
