import { constants } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { ExitwatchError, reasonOf } from '../common/errors.js';
import { distrustOf, trustedOwners } from '../common/file-trust.js';
import { regular } from '../common/small-file.js';

import { BlockCache } from './block-cache.js';
import { IndexCache } from './index-cache.js';
import { type SegmentFiles, segmentsIn } from './segment-files.js';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** How many to remember: blocks of 1 MiB, and indexes of 300 KiB. */
const LITTLE = { blocks: 1, indexes: 1 };
const MUCH = { blocks: 12, indexes: 64 };

/** The directory of a journal, for a reader. */
export class JournalDirectory {
  readonly path: string;
  readonly indexes: IndexCache;
  readonly blocks: BlockCache;
  readonly #owners: readonly number[];

  private constructor(path: string, owners: readonly number[], isAskedOften: boolean) {
    this.path = path;
    const { blocks, indexes } = isAskedOften ? MUCH : LITTLE;
    this.indexes = new IndexCache(indexes, (name) => this.file(name));
    this.blocks = new BlockCache(blocks);
    this.#owners = owners;
  }

  /**
   * Its files must belong to root, to us, or to the owner of the directory, and nobody else may be able to
   * write them. Of one that is asked often, more is remembered, in about 40 MiB.
   *
   * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_NO_JOURNAL`, `ERR_EXITWATCH_JOURNAL`.
   */
  static async open(path: string, { isAskedOften = false } = {}): Promise<JournalDirectory> {
    try {
      const status = await stat(path);
      if (!status.isDirectory()) throw new Error('it is not a directory');
      const distrust = distrustOf(status, null);
      if (distrust !== null) throw new Error(`it ${distrust}`);
      return new JournalDirectory(path, trustedOwners(status.uid), isAskedOften);
    } catch (error) {
      throw journalError(path, error);
    }
  }

  /** Oldest first. */
  async segments(): Promise<SegmentFiles[]> {
    try {
      return segmentsIn(await readdir(this.path));
    } catch (error) {
      throw journalError(this.path, error);
    }
  }

  /** `null`: there is no such file. */
  async file(name: string): Promise<FileHandle | null> {
    const path = join(this.path, name);
    let file;
    try {
      file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      const distrust = distrustOf(await regular(file), this.#owners);
      if (distrust !== null) throw new Error(`it ${distrust}`);
      return file;
    } catch (error) {
      await file?.close();
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw journalError(path, error);
    }
  }
}

export function journalError(path: string, error: unknown): ExitwatchError {
  if (error instanceof ExitwatchError) return error;
  const where = JSON.stringify(path);
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
    return new ExitwatchError('ERR_EXITWATCH_NO_JOURNAL', `there is no journal in ${where}`, {
      cause: error,
    });
  }
  const detail = `the journal ${where} cannot be read: ${reasonOf(error)}`;
  return new ExitwatchError('ERR_EXITWATCH_JOURNAL', detail, { cause: error });
}
