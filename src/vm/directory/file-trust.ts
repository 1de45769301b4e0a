import { stat } from 'node:fs/promises';

import { ExitwatchError } from '../../common/errors.js';
import { trustedOwners } from '../../common/file-trust.js';

/** Which users may have written the logs of one name in a control directory. */
export class FileTrust {
  readonly uids: readonly number[];
  readonly #warn: (error: Error) => void;

  private constructor(uids: readonly number[], warn: (error: Error) => void) {
    this.uids = uids;
    this.#warn = warn;
  }

  /**
   * Trusts root, us, the owner of the directory, who can do anything in it, and `uid`: the user
   * that the process ran as.
   */
  static async of(
    directory: string,
    uid: number | null,
    warn: (error: Error) => void,
  ): Promise<FileTrust> {
    const status = await stat(directory).catch(() => null);
    return new FileTrust(trustedOwners(status?.uid, uid), warn);
  }

  /** Whether a trusted user owns the file, or it does not exist; if not, warns. */
  async accepts(path: string): Promise<boolean> {
    const status = await stat(path).catch(() => null);
    if (status === null || this.uids.includes(status.uid)) return true;
    this.refuse(path, `belongs to user ${status.uid}`);
    return false;
  }

  /** Warns that a file is not trusted, and why. */
  refuse(path: string, reason: string): void {
    const detail = `ignoring ${JSON.stringify(path)}: it ${reason}`;
    this.#warn(new ExitwatchError('ERR_EXITWATCH_UNTRUSTED_LOG', detail));
  }
}
