import { stat } from 'node:fs/promises';

import { LATE, withDeadline } from '../common/deadline.js';
import { asExitwatchError } from '../common/errors.js';

import { LogWork } from './log-work.js';

/** How long a disk may take to say how long a file is. */
const LONGEST_MS = 2000;

/** What one service writes itself. */
interface Written {
  service: string;
  file: string;
  maxBytes: number;
  keep: number | undefined;
}

/**
 * Rotates the files that services write to themselves, `logs.stdout` and `logs.stderr`, while they run: a
 * keeper does that at their starts only. Those of `logs.file` are rotated by the process that writes them.
 */
export class LogRotation extends LogWork {
  protected override async work(): Promise<void> {
    for (const each of this.#written()) {
      if (this.isEnded) return;
      await this.#rotateIfDue(each);
    }
  }

  /** Not what several of them write, in whatever phase: only one of them would be paused. */
  #written(): Written[] {
    const alive = this.supervisor.services().filter(({ run }) => run !== null);
    // What it was started with is not known any more. It is about to end.
    if (alive.some(({ isCurrent }) => !isCurrent)) return [];
    const found = alive.flatMap(({ name, phase }) => {
      const { logs = {} } = this.supervisor.service(name).spec();
      const { file: own, stdout, stderr, maxBytes = 0, keep } = logs;
      const files = [...new Set([own, stdout, stderr])].filter((file) => file !== undefined);
      const isOurs = (file: string) => maxBytes > 0 && phase === 'running' && file !== own;
      return files.map((file) => ({ service: name, file, maxBytes, keep, isOurs: isOurs(file) }));
    });
    const isAlone = ({ file }: Written) => found.filter((each) => each.file === file).length === 1;
    return found.filter((each) => each.isOurs && isAlone(each));
  }

  async #rotateIfDue({ service, file, maxBytes, keep }: Written): Promise<void> {
    try {
      const status = await withDeadline(stat(file), LONGEST_MS);
      if (status === LATE || status.size < maxBytes) return;
      await this.supervisor.rotateLog(service, file, keep);
      this.works(file);
    } catch (error) {
      const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (!isGone) this.fails(service, file, asExitwatchError(error));
    }
  }
}
