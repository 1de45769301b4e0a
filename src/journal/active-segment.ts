import { closeSync, constants, fdatasync, fsyncSync, ftruncateSync, write } from 'node:fs';
import { promisify } from 'node:util';

import { toJsonLine } from '../common/safe-text.js';
import { bootId } from '../identity/boot-id.js';
import { writeAll } from '../memory/state-folder.js';

import type { Clock } from './clock.js';
import type { JournalFolder } from './journal-folder.js';
import type { SegmentHeader } from './rows.js';
import { plainName } from './segment-files.js';
import { SegmentSummary } from './segment-index.js';

const { O_CREAT, O_RDWR, O_TRUNC } = constants;

const writeSome = promisify(write);
const syncData = promisify(fdatasync);

/** The segment to which rows are appended. */
export class ActiveSegment {
  readonly first: number;
  readonly #file: number;
  readonly #startNs: number;
  #size: number;
  /** `null`: not of all rows; it must be made again from the file. */
  readonly summary: SegmentSummary | null;

  private constructor(
    file: number,
    header: Pick<SegmentHeader, 'first' | 'monotonicNs'>,
    size: number,
    summary: SegmentSummary | null,
  ) {
    this.first = header.first;
    this.#file = file;
    this.#startNs = header.monotonicNs;
    this.#size = size;
    this.summary = summary;
  }

  /** Begins a segment; its header is on disk when this returns. */
  static begin(
    folder: JournalFolder,
    { first, keeps }: Pick<SegmentHeader, 'first' | 'keeps'>,
    clock: Clock,
  ): ActiveSegment {
    const name = plainName(first);
    const header: SegmentHeader = {
      ...{ event: 'segment', version: 1, first, bootId: bootId() },
      ...{ at: new Date(clock.now()), monotonicNs: clock.monotonicNs(), keeps },
    };
    const line = Buffer.from(`${toJsonLine(header)}\n`);
    let file: number | undefined;
    try {
      file = folder.open(name, O_RDWR | O_CREAT | O_TRUNC);
      writeAll(file, line);
      fsyncSync(file);
      folder.sync();
      return new ActiveSegment(file, header, line.length, new SegmentSummary(line.length));
    } catch (error) {
      if (file !== undefined) closeSync(file);
      folder.remove(name);
      throw error;
    }
  }

  /** Goes on with a segment of this boot, whose first `size` bytes are whole rows. */
  static resume(folder: JournalFolder, header: SegmentHeader, size: number): ActiveSegment {
    const file = folder.open(plainName(header.first), O_RDWR);
    try {
      ftruncateSync(file, size);
      return new ActiveSegment(file, header, size, null);
    } catch (error) {
      closeSync(file);
      throw error;
    }
  }

  get size(): number {
    return this.#size;
  }

  /** For how long it has been written to, in ms, whatever the wall clock says. */
  ageMs(clock: Clock): number {
    return (clock.monotonicNs() - this.#startNs) / 1e6;
  }

  /** Appends whole rows; they are on disk when it resolves. If it rejects, none of them is there. */
  async append(rows: Buffer): Promise<void> {
    try {
      for (let written = 0; written < rows.length;) {
        const left = rows.length - written;
        const { bytesWritten } = await writeSome(
          this.#file,
          rows,
          written,
          left,
          this.#size + written,
        );
        written += bytesWritten;
      }
      await syncData(this.#file);
    } catch (error) {
      // What was written may be lost all the same, so it is written again: fsync(2) says so once.
      ftruncateSync(this.#file, this.#size);
      throw error;
    }
    this.#size += rows.length;
  }

  close(): void {
    closeSync(this.#file);
  }
}
