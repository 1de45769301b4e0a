import type { ExitEvent } from '../exit-event.js';

import { NamePattern } from './name-pattern.js';
import { listProcesses } from './process-list.js';

/**
 * Matches ends of processes by the kernel's name and, of processes that were there at the beginning,
 * the executable's file name.
 */
export class NameFilter {
  readonly #pattern: NamePattern;
  /** By the id of the process. */
  readonly #executables = new Map<string, string>();
  /** Ends of processes without a known name: whether they match cannot be told. */
  unnamed = 0;

  constructor(globs: readonly string[]) {
    this.#pattern = new NamePattern(globs);
    for (const { identity, executable } of listProcesses()) {
      if (executable !== null) this.#executables.set(identity.id, executable);
    }
  }

  matches(event: ExitEvent): boolean {
    const names = [event.name, this.#executables.get(event.id)];
    this.#executables.delete(event.id);
    const known = names.filter((name) => typeof name === 'string');
    if (known.length === 0) this.unnamed++;
    return this.#pattern.matches(known);
  }
}
