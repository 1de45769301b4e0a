import { constants } from 'node:fs';
import { access, lstat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

import { LATE, withDeadline } from '../common/deadline.js';
import { ExitwatchError, reasonOf } from '../common/errors.js';

import { LogWork } from './log-work.js';

/** How long a disk may take to answer. */
const LONGEST_MS = 2000;
/** See pipe(7). */
const PIPE_KIB = 64;

/**
 * Warns of each `logs.file` that cannot be written, once until it can be again: the service waits as soon as
 * it has printed more than a pipe holds, and nobody would know why.
 */
export class LogCheck extends LogWork {
  /** Files whose disk has not answered: asking again would only take up another thread. */
  readonly #unanswered = new Set<string>();

  protected override async work(): Promise<void> {
    for (const { service, file } of this.#written()) {
      if (this.#unanswered.has(file)) continue;
      this.#unanswered.add(file);
      const answer = whyUnwritable(file).finally(() => this.#unanswered.delete(file));
      const reason = await withDeadline(answer, LONGEST_MS);
      if (this.isEnded) return;
      if (reason === null) this.works(file);
      else this.fails(service, file, unwritable(file, reason === LATE ? NO_ANSWER : reason));
    }
  }

  #written(): { service: string; file: string }[] {
    return this.supervisor.services().flatMap(({ name, run }) => {
      const { file } = this.supervisor.service(name).spec().logs ?? {};
      return run === null || file === undefined ? [] : [{ service: name, file }];
    });
  }
}

const NO_ANSWER = `its disk has not answered for ${LONGEST_MS} ms`;

function unwritable(file: string, reason: string): ExitwatchError {
  const what = `its log ${JSON.stringify(file)} cannot be written: ${reason}`;
  const detail = `${what}; it has to wait when it has printed ${PIPE_KIB} KiB more`;
  return new ExitwatchError('ERR_EXITWATCH_SYSTEM', detail);
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
