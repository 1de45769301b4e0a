import { once } from 'node:events';

import type { MonitorEvent } from '../../events/exit-event.js';
import type { Ready } from '../../monitor/ready.js';
import type { SignalEvent } from '../../events/signal-event.js';

import { toJsonLine } from './escape.js';
import { ExitTable } from './exit-table.js';
import { columnsOf, paragraph } from './terminal-text.js';
import { describeWatch, isDegraded, UnseenNote } from './watch-opening.js';

/** Most bytes to buffer for a reader that has stopped reading. */
const MOST_UNWRITTEN = 16 * 1024 * 1024;

/** Prints what `exitwatch watch` sees, as JSON or as a table with notes. */
export class WatchPrinter {
  readonly #asJson: boolean;
  readonly #table: ExitTable;
  #note: UnseenNote | undefined;
  #unwritten = 0;

  constructor({ json, hasCommands }: { json: boolean; hasCommands: boolean }) {
    this.#asJson = json;
    const colored = process.stdout.isTTY && !process.env['NO_COLOR'];
    this.#table = new ExitTable(colored, () => columnsOf(process.stdout), new Date(), hasCommands);
  }

  ready(ready: Ready, pids: readonly number[]): void {
    if (!this.#asJson || isDegraded(ready)) say(describeWatch(ready, pids));
    this.#note = this.#asJson ? undefined : new UnseenNote(ready);
    process.stdout.write(`${this.#asJson ? toJsonLine(ready) : this.#table.header()}\n`);
  }

  /** Waits for a slow reader, so that the backlog stays in the monitor, where it is bounded. */
  async print(event: MonitorEvent, signal: AbortSignal): Promise<void> {
    if (event.event === 'exit') {
      const note = this.#note?.before(event) ?? null;
      if (note !== null) say(note);
    }
    const line = this.#asJson ? toJsonLine(event) : this.#row(event);
    if (process.stdout.write(`${line}\n`)) return;
    await once(process.stdout, 'drain', { signal }).catch(() => undefined);
  }

  /** Does not wait for the reader. */
  signal(event: SignalEvent): void {
    if (process.stdout.writableLength > MOST_UNWRITTEN) this.#unwritten++;
    else {
      const line = this.#asJson ? toJsonLine(event) : this.#table.signal(event);
      process.stdout.write(`${line}\n`);
    }
  }

  end(): void {
    if (this.#unwritten > 0)
      say(`exitwatch: output was too slow; skipped ${this.#unwritten} signals`);
  }

  #row(event: MonitorEvent): string {
    switch (event.event) {
      case 'exit':
        return this.#table.exit(event);
      case 'gap':
        return this.#table.gap(event);
      case 'source':
        return this.#table.source(event);
    }
  }
}

function say(text: string): void {
  process.stderr.write(`${paragraph(text, columnsOf(process.stderr), 2)}\n`);
}
