import { failureError } from '../addon.js';
import type { ExitEvent, Gap, Outcome } from '../exit-event.js';
import { bootId, identityId, inodeOf } from '../process-identity.js';
import { decodeWaitStatus } from '../wait-status.js';
import type { ExitwatchError } from '../errors.js';

/** The layout of native/core/record.h, in units of the two views. */
export const RECORD_BYTES = 104;
const RECORD_DOUBLES = RECORD_BYTES / 8;
const RECORD_WORDS = RECORD_BYTES / 4;

enum Double {
  timeNs,
  fromNs,
  clockMs,
  uncertaintyNs,
  startTicks,
  startedMs,
  inode,
  count,
}

enum Word {
  kind = 16,
  pid,
  parentPid,
  status,
  uid,
  flags,
}

const NAME_OFFSET = 88;
const NAME_BYTES = 16;

export const Kind = { exit: 1, gap: 2, ready: 3, failed: 4 } as const;

enum Flag {
  statusKnown = 1 << 0,
  coreKnown = 1 << 1,
  kernelTime = 1 << 2,
  nameKnown = 1 << 3,
  uidKnown = 1 << 4,
  startKnown = 1 << 5,
  lossless = 1 << 6,
  lost = 1 << 8,
  notReaped = 1 << 9,
  queueLimit = 1 << 10,
  told = 1 << 11,
  silenced = 1 << 12,
}

/** A batch of records, as the addon fills it. */
export class ConnectorRecords {
  readonly buffer: ArrayBuffer;
  readonly #doubles: Float64Array;
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  /** Read before anything depends on it: a batch must not fail for want of a descriptor. */
  readonly #bootId = bootId();
  /**
   * Then nobody knows the process by its start; and two that had the same pid may have begun within
   * one clock tick.
   */
  readonly #hasInodes = typeof inodeOf(process.pid) === 'number';

  constructor(capacity: number) {
    this.buffer = new ArrayBuffer(capacity * RECORD_BYTES);
    this.#doubles = new Float64Array(this.buffer);
    this.#words = new Int32Array(this.buffer);
    this.#bytes = Buffer.from(this.buffer);
  }

  /** One of {@link Kind}. */
  kind(index: number): number {
    return this.#word(index, Word.kind);
  }

  exit(index: number): ExitEvent {
    const flags = this.#word(index, Word.flags);
    const pid = this.#word(index, Word.pid);
    const parentPid = this.#word(index, Word.parentPid);
    const timeNs = this.#double(index, Double.timeNs);
    const inode = this.#double(index, Double.inode);
    const startKnown = (flags & Flag.startKnown) !== 0;
    const uncertaintyMs = this.#double(index, Double.uncertaintyNs) / 1e6;
    return {
      event: 'exit',
      id: identityId(this.#bootId, pid, {
        inode: inode === 0 ? null : inode,
        startTicks: startKnown && !this.#hasInodes ? this.#double(index, Double.startTicks) : null,
        exitedNs: timeNs,
      }),
      pid,
      parentPid: parentPid === 0 ? null : parentPid,
      name: (flags & Flag.nameKnown) !== 0 ? this.#name(index) : null,
      uid: (flags & Flag.uidKnown) !== 0 ? this.#word(index, Word.uid) >>> 0 : null,
      startedAt: startKnown ? new Date(this.#double(index, Double.startedMs)) : null,
      exitedAt: this.#date(index, timeNs),
      exitedNs: (flags & Flag.kernelTime) !== 0 ? timeNs : null,
      // Stamped by the kernel, what is below a millisecond is the way to us, not a doubt.
      uncertaintyMs:
        (flags & Flag.kernelTime) !== 0 ? Math.floor(uncertaintyMs) : Math.ceil(uncertaintyMs),
      source: 'connector',
      lossless: (flags & Flag.lossless) !== 0,
      ...this.#outcome(index, flags),
    };
  }

  /** Whether an exit is only for who watches the process. */
  isTold(index: number): boolean {
    return (this.#word(index, Word.flags) & Flag.told) !== 0;
  }

  gap(index: number): Gap {
    const flags = this.#word(index, Word.flags);
    const isSilenced = (flags & Flag.silenced) !== 0;
    const isOurs = (flags & Flag.queueLimit) !== 0;
    return {
      event: 'gap',
      from: this.#date(index, this.#double(index, Double.fromNs)),
      to: this.#date(index, this.#double(index, Double.timeNs)),
      lost: isSilenced ? null : this.#double(index, Double.count),
      reason: isSilenced ? 'silenced' : isOurs ? 'queue-limit' : 'receive-buffer',
      recovered: this.#word(index, Word.status),
    };
  }

  receiveBufferBytes(index: number): number {
    return this.#double(index, Double.count);
  }

  failure(index: number): ExitwatchError {
    return failureError(
      this.#word(index, Word.uid),
      this.#word(index, Word.status),
      this.#name(index),
    );
  }

  #outcome(index: number, flags: number): Outcome {
    if ((flags & Flag.statusKnown) === 0) {
      const unknownReason =
        (flags & Flag.lost) !== 0
          ? 'lost'
          : (flags & Flag.notReaped) !== 0
            ? 'not-reaped'
            : 'gone-before-watch';
      return { how: 'unknown', exitCode: null, signal: null, coreDumped: null, unknownReason };
    }
    const status = decodeWaitStatus(this.#word(index, Word.status));
    if (status.how === 'killed' && (flags & Flag.coreKnown) === 0) {
      return { ...status, coreDumped: null, unknownReason: null };
    }
    return { ...status, unknownReason: null };
  }

  #double(index: number, field: Double): number {
    return this.#doubles[index * RECORD_DOUBLES + field] ?? NaN;
  }

  #word(index: number, field: Word): number {
    return this.#words[index * RECORD_WORDS + field] ?? 0;
  }

  #date(index: number, timeNs: number): Date {
    return new Date(timeNs / 1e6 + this.#double(index, Double.clockMs));
  }

  #name(index: number): string {
    const begin = index * RECORD_BYTES + NAME_OFFSET;
    const end = this.#bytes.indexOf(0, begin);
    return this.#bytes.toString('utf8', begin, Math.min(end, begin + NAME_BYTES));
  }
}
