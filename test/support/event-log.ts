import type { ExitEvent, ExitMonitor, Gap } from '../../src';

import { arrives } from './wait';

/** Collects the events of a monitor, for queries by pid. */
export class EventLog {
  readonly exits = new Map<number, ExitEvent[]>();
  readonly gaps: Gap[] = [];
  #wake: (() => void) | undefined;

  constructor(monitor: ExitMonitor) {
    monitor.on('exit', (event) => {
      const events = this.exits.get(event.pid);
      if (events === undefined) this.exits.set(event.pid, [event]);
      else events.push(event);
      this.#wake?.();
    });
    monitor.on('gap', (gap) => {
      this.gaps.push(gap);
      this.#wake?.();
    });
  }

  /** The number of exits that were reported, or reported as lost. */
  get count(): number {
    const told = [...this.exits.values()].reduce((sum, events) => sum + events.length, 0);
    return this.gaps.reduce((sum, gap) => sum + (gap.lost ?? 0), told);
  }

  of(pid: number): ExitEvent[] {
    return this.exits.get(pid) ?? [];
  }

  /** Resolves when the condition holds. */
  until(what: string, holds: () => boolean): Promise<void> {
    return arrives(what, this.#until(holds), () => this.#told());
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Resolves when the exit of each process has been reported. */
  untilAllOf(pids: readonly number[]): Promise<void> {
    const isReported = (pid: number) => this.exits.has(pid);
    const missing = () => {
      const left = pids.filter((pid) => !isReported(pid));
      return `${left.length} are missing: ${left.slice(0, 20).join(' ')}\n${this.#told()}`;
    };
    const what = `the exits of ${pids.length} processes`;
    return arrives(
      what,
      this.#until(() => pids.every(isReported)),
      missing,
    );
  }

  #told(): string {
    const exits = [...this.exits.values()].flat().map(({ pid, name }) => `${pid} (${name ?? '?'})`);
    return [
      `${exits.length} exits were reported: ${exits.length > 20 ? '… ' : ''}${exits.slice(-20).join(', ')}`,
      ...this.gaps.map((gap) => JSON.stringify(gap)),
    ].join('\n');
  }
}
