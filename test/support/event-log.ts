import type { ExitEvent, ExitMonitor, Gap } from '../../src';

/** Everything a monitor tells, to be asked about by pid. */
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

  /** Exits that were told, or told to be lost. */
  get count(): number {
    const told = [...this.exits.values()].reduce((sum, events) => sum + events.length, 0);
    return this.gaps.reduce((sum, gap) => sum + (gap.lost ?? 0), told);
  }

  of(pid: number): ExitEvent[] {
    return this.exits.get(pid) ?? [];
  }

  /** Resolves when it holds; the test's own timeout is the limit. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  untilAllOf(pids: readonly number[]): Promise<void> {
    return this.until(() => pids.every((pid) => this.exits.has(pid)));
  }
}
