import { invalidOption } from './options.js';

/** The kernel truncates names to this length. */
const KERNEL_NAME_BYTES = 15;

/** A file name has at most 255 bytes; a pattern may be longer. */
const MOST_CHARACTERS = 1024;

/**
 * Globs (`*`, `?`, `[a-z]`) for process names; they also match names that the kernel has truncated.
 */
export class NamePattern {
  readonly #patterns: RegExp[];
  /** The names that match, if no pattern has wildcards; otherwise `null`. */
  readonly literals: readonly string[] | null;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(globs: readonly string[]) {
    const hasWildcards = globs.some((glob) => /[*?[]/.test(glob));
    const cutNames = globs.map((glob) =>
      Buffer.from(glob).subarray(0, KERNEL_NAME_BYTES).toString(),
    );
    this.literals = hasWildcards ? null : [...new Set([...globs, ...cutNames])];
    this.#patterns = globs.flatMap((glob) => {
      const cut = Buffer.from(glob).subarray(0, KERNEL_NAME_BYTES).toString();
      return [...new Set([glob, cut])].map((each) => globPattern(each));
    });
  }

  matches(names: readonly string[]): boolean {
    return names.some((name) => this.#patterns.some((pattern) => pattern.test(name)));
  }
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function globPattern(glob: string): RegExp {
  if (glob.length > MOST_CHARACTERS) {
    throw invalidOption(`a name pattern can have at most ${MOST_CHARACTERS} characters`);
  }
  const source = glob.replace(
    /(\*)+|(\?)|\[(!?)([^\]]+)\]|([\\^$.|+(){}[\]/-])/g,
    (_, star?: string, any?: string, not?: string, set?: string, literal?: string) => {
      if (star !== undefined) return '.*';
      if (any !== undefined) return '.';
      if (set !== undefined) return `[${not ? '^' : ''}${set.replace(/[\\^[]/g, '\\$&')}]`;
      return `\\${literal ?? ''}`;
    },
  );
  try {
    return new RegExp(`^${source}$`, 's');
  } catch {
    throw invalidOption(`${JSON.stringify(glob)} is not a valid name pattern`);
  }
}
