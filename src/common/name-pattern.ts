import { invalidOption } from './options.js';

/** The kernel truncates names to this length. */
const KERNEL_NAME_BYTES = 15;

/** A file name has at most 255 bytes; a pattern may be longer. */
const MOST_CHARACTERS = 1024;

/**
 * Globs (`*`, `?`, `[a-z]`) for process names; they also match names that the kernel has truncated, and a
 * name that is written in just this way, such as `worker[3]`.
 */
export class NamePattern {
  readonly #globs: readonly string[];
  readonly #patterns: readonly RegExp[];
  readonly #longPatterns: readonly LongPattern[];
  /** The names that match, if no pattern has wildcards; otherwise `null`. */
  readonly literals: readonly string[] | null;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(globs: readonly string[]) {
    const hasWildcards = globs.some((glob) => WILDCARDS.test(glob));
    this.#globs = globs;
    const longGlobs = globs.filter((glob) => Buffer.byteLength(glob) > KERNEL_NAME_BYTES);
    this.literals = hasWildcards ? null : [...new Set([...globs, ...longGlobs.map(cutName)])];
    this.#patterns = globs.map(globPattern);
    this.#longPatterns = longGlobs.map((glob) => ({
      cut: globPattern(cutName(glob)),
      whole: new RegExp(`${globPattern(glob).source.slice(0, -1)}${VERSION.source}$`, 's'),
    }));
  }

  /** `names`: of one process, by the kernel and of its program. */
  matches(names: readonly string[]): boolean {
    return names.some(
      (name) =>
        this.#globs.includes(name) ||
        this.#patterns.some((pattern) => pattern.test(name)) ||
        this.#longPatterns.some(({ cut, whole }) => {
          if (!cut.test(name)) return false;
          const others = wholeNames(name, names);
          return others.length === 0 || others.some((other) => whole.test(other));
        }),
    );
  }

  /** Whether it matches, or nobody knows: the program of a link may have another name. */
  mayMatch(names: readonly string[]): boolean {
    return (
      this.matches(names) ||
      names.some((name) => this.#longPatterns.some(({ cut }) => cut.test(name)))
    );
  }
}

const WILDCARDS = /[*?[]/;

/** A glob that matches this name alone. */
export function literally(name: string): string {
  return name.replace(/[*?[]/g, '[$&]');
}

/** For the names of processes whose program has a long name. */
interface LongPattern {
  /** For the name that the kernel has cut. */
  cut: RegExp;
  /** For the name of the program: what was run may be a link to a version of it, `gcc` to `gcc-14`. */
  whole: RegExp;
}

const VERSION = /(?:[-_.]?v?\d[\w.]*)?/;

function cutName(glob: string): string {
  return Buffer.from(glob).toString('utf8', 0, KERNEL_NAME_BYTES);
}

/** The names of which this one is the beginning. */
function wholeNames(name: string, names: readonly string[]): string[] {
  const start = name.replace(/\ufffd+$/, ''); // of a character of several bytes, cut in between
  return names.filter((other) => other.length > name.length && other.startsWith(start));
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
