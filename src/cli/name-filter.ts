import { readdirSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

import type { ExitEvent } from '../exit-event.js';
import { identify } from '../process-identity.js';

import { UsageError } from './usage-error.js';

/** The kernel keeps this much of a name. */
const KERNEL_NAME_BYTES = 15;

/**
 * Matches ends of processes by globs (`*`, `?`, `[a-z]`) over the kernel's name and, of processes
 * that were there at the beginning, the executable's file name.
 */
export class NameFilter {
  readonly #patterns: RegExp[];
  readonly #executables: Map<string, string>;
  /** Ends of processes without a known name: whether they match cannot be told. */
  unnamed = 0;

  constructor(globs: readonly string[]) {
    this.#patterns = globs.flatMap((glob) => {
      const cut = Buffer.from(glob).subarray(0, KERNEL_NAME_BYTES).toString();
      return cut === glob ? [globPattern(glob)] : [globPattern(glob), globPattern(cut)];
    });
    this.#executables = executableNames();
  }

  matches(event: ExitEvent): boolean {
    const names = [event.name, this.#executables.get(event.id)];
    this.#executables.delete(event.id);
    const known = names.filter((name) => typeof name === 'string');
    if (known.length === 0) this.unnamed++;
    return known.some((name) => this.#patterns.some((pattern) => pattern.test(name)));
  }
}

function globPattern(glob: string): RegExp {
  const source = glob.replace(
    /(\*)|(\?)|\[(!?)([^\]]+)\]|([\\^$.|+(){}[\]/-])/g,
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
    throw new UsageError(`--name: ${JSON.stringify(glob)} is no pattern`);
  }
}

/** By the id of the process. What cannot be read, of others' processes without privilege, is left. */
function executableNames(): Map<string, string> {
  const names = new Map<string, string>();
  for (const entry of readdirSync('/proc')) {
    if (!/^[1-9]\d*$/.test(entry)) continue;
    try {
      const executable = basename(readlinkSync(`/proc/${entry}/exe`)).replace(/ \(deleted\)$/, '');
      const identity = identify(Number(entry));
      if (identity !== null) names.set(identity.id, executable);
    } catch {
      continue; // it ended, or is none of our business
    }
  }
  return names;
}
