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
  /** For names that the kernel has cut. */
  readonly #cutPatterns: RegExp[];
  /** The names that match, if no pattern has wildcards; otherwise `null`. */
  readonly literals: readonly string[] | null;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(globs: readonly string[]) {
    const hasWildcards = globs.some((glob) => /[*?[]/.test(glob));
    const cutGlobs = globs.flatMap((glob) => {
      const bytes = Buffer.from(glob);
      return bytes.length > KERNEL_NAME_BYTES ? [bytes.toString('utf8', 0, KERNEL_NAME_BYTES)] : [];
    });
    this.literals = hasWildcards ? null : [...new Set([...globs, ...cutGlobs])];
    this.#patterns = globs.map(globPattern);
    this.#cutPatterns = cutGlobs.map(globPattern);
  }

  /** `names`: of one process, by the kernel and of its program. */
  matches(names: readonly string[]): boolean {
    return names.some(
      (name) =>
        this.#patterns.some((pattern) => pattern.test(name)) ||
        (this.#cutPatterns.some((pattern) => pattern.test(name)) && !isBeginning(name, names)),
    );
  }
}

/** Whether the whole name is known, too: then that counts. */
function isBeginning(name: string, names: readonly string[]): boolean {
  const whole = name.replace(/\ufffd+$/, ''); // of a character of several bytes, cut in between
  return names.some((other) => other.length > name.length && other.startsWith(whole));
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
