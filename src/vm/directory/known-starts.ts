import type { KnownStart, VmStart } from './vm-start.js';

/** What a directory remembers of the last start of each name, so that no end is delivered twice. */
export class KnownStarts {
  readonly #starts = new Map<string, KnownStart>();

  constructor(known: readonly KnownStart[] = []) {
    for (const start of known) this.#starts.set(start.name, { ...start });
  }

  /** `null`: nothing is known of it. */
  of(name: string): KnownStart | null {
    return this.#starts.get(name) ?? null;
  }

  found(start: VmStart): void {
    const judgedUntil = this.of(start.name)?.judgedUntil ?? null;
    this.#starts.set(start.name, { ...start, isOver: false, judgedUntil, foundAt: new Date() });
  }

  /** Its event log has come. */
  logged({ name, eventLog }: VmStart): void {
    const known = this.#starts.get(name);
    if (known !== undefined) known.eventLog = eventLog;
  }

  /** It has ended; what its event log has of up to then is accounted for. */
  ended({ name }: VmStart, until: Date): void {
    const known = this.#starts.get(name);
    if (known === undefined) return;
    known.isOver = true;
    known.judgedUntil = new Date(Math.max(until.getTime(), known.judgedUntil?.getTime() ?? 0));
  }
}
