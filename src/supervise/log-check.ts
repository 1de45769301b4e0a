import { constants } from 'node:fs';
import { access, lstat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

import { ExitwatchError, reasonOf } from '../common/errors.js';
import type { Supervisor } from '../supervisor/index.js';

import { repeat } from './repeat.js';

const EVERY_MS = 10_000;
/** See pipe(7). */
const PIPE_KIB = 64;

/**
 * Warns of each `logs.file` that cannot be written, once until it can be again: the service waits as soon as
 * it has printed more than a pipe holds, and nobody would know why.
 */
export class LogCheck {
  readonly #supervisor: Supervisor;
  readonly #onError: (service: string, error: ExitwatchError) => void;
  #cancel: (() => void) | undefined;
  #isEnded = false;
  readonly #failing = new Set<string>();

  constructor(supervisor: Supervisor, onError: (service: string, error: ExitwatchError) => void) {
    this.#supervisor = supervisor;
    this.#onError = onError;
  }

  begin(): void {
    this.#cancel = repeat(EVERY_MS, () => this.#look());
  }

  end(): void {
    this.#isEnded = true;
    this.#cancel?.();
  }

  /** Never rejects. One file at a time: a disk that does not answer holds up nothing else. */
  async #look(): Promise<void> {
    for (const { service, file } of this.#written()) {
      const reason = await whyUnwritable(file);
      if (this.#isEnded) return;
      const key = `${service}:${file}`;
      if (reason === null) this.#failing.delete(key);
      if (reason === null || this.#failing.has(key)) continue;
      this.#failing.add(key);
      const what = `its log ${JSON.stringify(file)} cannot be written: ${reason}`;
      const detail = `${what}; it has to wait when it has printed ${PIPE_KIB} KiB more`;
      this.#onError(service, new ExitwatchError('ERR_EXITWATCH_SYSTEM', detail));
    }
  }

  #written(): { service: string; file: string }[] {
    return this.#supervisor.services().flatMap(({ name, run }) => {
      const { file } = this.#supervisor.service(name).spec().logs ?? {};
      return run === null || file === undefined ? [] : [{ service: name, file }];
    });
  }
}

/** `null`: it can be written, as far as can be seen. */
export async function whyUnwritable(file: string): Promise<string | null> {
  try {
    const isThere = await checkFile(file);
    await access(isThere ? file : dirname(file), constants.W_OK);
    const { blocks, bavail, bfree } = await statfs(dirname(file));
    const free = process.geteuid?.() === 0 ? bfree : bavail;
    // Without a limit there are no blocks at all.
    return free > 0 || blocks === 0 ? null : 'there is no room on its disk';
  } catch (error) {
    return reasonOf(error);
  }
}

/** Resolves with whether it is there. */
async function checkFile(file: string): Promise<boolean> {
  try {
    if ((await lstat(file)).isFile()) return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
  throw new Error('it is no regular file');
}
