import type { ExitReader } from '../native/addon.js';

import { CUT } from './redact-secrets.js';

/**
 * Removes secrets from the arguments of a process. Gets them as they are, the first one is the name
 * it was called by; returns those to show.
 */
export type Redact = (args: string[]) => string[];

/** Command lines by the numbers that the addon gives them. */
export class CommandLines {
  readonly #ask: ExitReader['commandLine'];
  readonly #redact: Redact;
  /** A signal is mostly followed by the exit that it leads to. */
  #last = 0;
  #lastArgs: readonly string[] | null = null;

  constructor(ask: ExitReader['commandLine'], redact: Redact) {
    this.#ask = ask;
    this.#redact = redact;
  }

  /** `null` if unknown, or if it cannot be redacted. */
  of(number: number): readonly string[] | null {
    if (number === 0) return null;
    if (number === this.#last) return this.#lastArgs;
    const text = this.#ask(number);
    if (text === undefined) return null;
    this.#last = number;
    this.#lastArgs = commandLineOf(text.bytes, text.isCut, this.#redact);
    return this.#lastArgs;
  }
}

/** What a process's memory has between the bounds of its arguments; `null` if there are none. */
export function commandLineOf(
  bytes: Buffer,
  isCut: boolean,
  redact: Redact,
): readonly string[] | null {
  const args = argumentsIn(bytes, isCut);
  if (args.length === 0) return null;
  try {
    return Object.freeze(redact(args).map(String));
  } catch (error) {
    // What may be secret is not shown; that it failed is, as with a listener.
    queueMicrotask(() => {
      throw error;
    });
    return null;
  }
}

/**
 * Without empty ones at the end: programs that rewrite their arguments (setproctitle(3)) leave one text
 * and many NULs.
 */
function argumentsIn(bytes: Buffer, isCut: boolean): string[] {
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  if (end === 0) return [];
  const args = bytes.toString('utf8', 0, end).split('\0');
  if (isCut) args.push(`${args.pop() ?? ''}${CUT}`);
  return args;
}
