import type { KnownStart, VmStart } from './vm-start.js';

/** What a directory remembers about each name's last start, so that no end is delivered twice. */
export class KnownStarts {
  readonly #starts = new Map<string, KnownStart>();

  constructor(known: readonly KnownStart[] = []) {
    for (const start of known) this.#starts.set(start.name, { ...start });
  }

  /** `null`: nothing is known about it. */
  of(name: string): KnownStart | null {
    return this.#starts.get(name) ?? null;
  }

  found(start: VmStart): void {
    const judgedUntil = this.of(start.name)?.judgedUntil ?? null;
    this.#starts.set(start.name, { ...start, isOver: false, judgedUntil, foundAt: new Date() });
  }

  /** Its event log has appeared. */
  logged({ name, eventLog }: VmStart): void {
    const known = this.#starts.get(name);
    if (known !== undefined) known.eventLog = eventLog;
  }

  /** It has ended, and accounts for its event log up to `until`. */
  ended({ name }: VmStart, until: Date): void {
    const known = this.#starts.get(name);
    if (known === undefined) return;
    known.isOver = true;
    known.judgedUntil = new Date(Math.max(until.getTime(), known.judgedUntil?.getTime() ?? 0));
  }
}
