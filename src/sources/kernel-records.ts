import { failureError, RECORD_BYTES } from '../addon.js';
import { bootId } from '../identity/boot-id.js';
import type { ExitEvent, Gap, Outcome } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';
import type { CgroupPaths } from '../trace/cgroup-paths.js';
import type { End } from '../trace/signal-history.js';
import { bootPrefix, inodeOf, pidNamespace } from '../identity/process-identity.js';
import { decodeWaitStatus } from '../events/wait-status.js';
import type { ExitwatchError } from '../common/errors.js';

import { IdWriter } from './id-writer.js';

/** The layout of native/core/record.h, in units of the two views. */
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
  cgroup,
  count,
  tracedFromNs,
}

enum Word {
  kind = 20,
  pid,
  parentPid,
  status,
  uid,
  flags,
}

const NAME_OFFSET = 104;
const NAME_BYTES = 16;
const EXECUTABLE_OFFSET = 120;
const EXECUTABLE_BYTES = 64;

export const Kind = { exit: 1, gap: 2, ready: 3, failed: 4, source: 5 } as const;

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
  noStream = 1 << 13,
  notPermitted = 1 << 14,
  traced = 1 << 15,
  traceBuffer = 1 << 16,
  namesPrograms = 1 << 17,
}

const NO_SIGNALS: readonly SignalSender[] = Object.freeze([]);

/** A batch of records, as the addon fills it. */
export class KernelRecords {
  readonly buffer: ArrayBuffer;
  readonly #doubles: Float64Array;
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  /** Read before anything depends on it: a batch must not fail for want of a descriptor. */
  readonly #ids = new IdWriter(bootPrefix(bootId(), pidNamespace()));
  /**
   * Then nobody knows the process by its start; and two that had the same pid may have begun within
   * one clock tick.
   */
  readonly #hasInodes = typeof inodeOf(process.pid) === 'number';
  readonly #cgroups: CgroupPaths;
  readonly #names: LastText;
  readonly #executables: LastText;
  /** By wait status: there are few. */
  readonly #outcomes = new Map<number, Outcome>();

  constructor(capacity: number, cgroups: CgroupPaths) {
    this.#cgroups = cgroups;
    this.buffer = new ArrayBuffer(capacity * RECORD_BYTES);
    this.#doubles = new Float64Array(this.buffer);
    this.#words = new Int32Array(this.buffer);
    this.#bytes = Buffer.from(this.buffer);
    this.#names = new LastText(this.buffer, NAME_OFFSET, NAME_BYTES);
    this.#executables = new LastText(this.buffer, EXECUTABLE_OFFSET, EXECUTABLE_BYTES);
  }

  /** One of {@link Kind}. */
  kind(index: number): number {
    return this.#word(index, Word.kind);
  }

  /** Without what the signal trace knows of it, but whether that was at work. */
  exit(index: number): ExitEvent {
    const flags = this.#word(index, Word.flags);
    const pid = this.#word(index, Word.pid);
    const parentPid = this.#word(index, Word.parentPid);
    const timeNs = this.#double(index, Double.timeNs);
    const inode = this.#double(index, Double.inode);
    const startKnown = (flags & Flag.startKnown) !== 0;
    const isTraced = (flags & Flag.traced) !== 0;
    const isKernelTime = (flags & Flag.kernelTime) !== 0;
    const uncertaintyMs = this.#double(index, Double.uncertaintyNs) / 1e6;
    const startedAt = startKnown ? new Date(this.#double(index, Double.startedMs)) : null;
    // Member by member: a spread would cost more than all the rest.
    const { how, exitCode, signal, coreDumped, unknownReason } = this.#outcome(index, flags);
    return {
      event: 'exit',
      id: this.#id(index, pid, inode, startKnown, timeNs),
      pid,
      parentPid: parentPid === 0 ? null : parentPid,
      name: (flags & Flag.nameKnown) !== 0 ? this.#names.at(index) : null,
      program: this.#executables.at(index) || null,
      uid: (flags & Flag.uidKnown) !== 0 ? this.#word(index, Word.uid) >>> 0 : null,
      cgroup: this.#cgroups.path(this.#double(index, Double.cgroup)),
      startedAt,
      exitedAt: this.#date(index, timeNs),
      exitedNs: isKernelTime ? timeNs : null,
      // Stamped by the kernel, what is below a millisecond is the way to us, not a doubt.
      uncertaintyMs: isKernelTime ? Math.floor(uncertaintyMs) : Math.ceil(uncertaintyMs),
      // The kernel's own stamp comes by the connector; what has none, a pidfd told.
      source: isKernelTime ? 'connector' : 'pidfd',
      lossless: (flags & Flag.lossless) !== 0,
      traced: isTraced,
      tracedSince: isTraced ? this.#tracedSince(index, startedAt) : null,
      sender: null,
      raisedAfter: null,
      signalsReceived: NO_SIGNALS,
      oom: null,
      how,
      exitCode,
      signal,
      coreDumped,
      unknownReason,
    } as ExitEvent;
  }

  /** The same for the signal trace. */
  end(index: number, { pid, signal }: ExitEvent): End {
    return {
      pid,
      inode: this.#double(index, Double.inode),
      startTicks: this.#double(index, Double.startTicks),
      timeNs: this.#double(index, Double.timeNs),
      signal,
    };
  }

  /** By the best that is known of the process, as {@link identityId} has it. */
  #id(index: number, pid: number, inode: number, startKnown: boolean, timeNs: number): string {
    if (inode !== 0) return this.#ids.id(pid, '', inode);
    if (startKnown && !this.#hasInodes) {
      return this.#ids.id(pid, 't', this.#double(index, Double.startTicks));
    }
    return this.#ids.id(pid, 'x', timeNs);
  }

  /** The id of a process that was sent a signal. */
  idOf({ pid, inode, startTicks }: Pick<End, 'pid' | 'inode' | 'startTicks'>): string {
    return inode !== 0 ? this.#ids.id(pid, '', inode) : this.#ids.id(pid, 't', startTicks);
  }

  /** Whether an exit is only for who watches the process. */
  isTold(index: number): boolean {
    return (this.#word(index, Word.flags) & Flag.told) !== 0;
  }

  gap(index: number): Gap {
    const flags = this.#word(index, Word.flags);
    const isSilenced = (flags & Flag.silenced) !== 0;
    const reason =
      (flags & Flag.queueLimit) !== 0
        ? 'queue-limit'
        : (flags & Flag.traceBuffer) !== 0
          ? 'trace-buffer'
          : 'receive-buffer';
    return {
      event: 'gap',
      from: this.#date(index, this.#double(index, Double.fromNs)),
      to: this.#date(index, this.#double(index, Double.timeNs)),
      lost: isSilenced ? null : this.#double(index, Double.count),
      reason: isSilenced ? 'silenced' : reason,
      recovered: this.#word(index, Word.status),
    };
  }

  /** When it was written. */
  date(index: number): Date {
    return this.#date(index, this.#double(index, Double.timeNs));
  }

  receiveBufferBytes(index: number): number | null {
    return this.hasNoStream(index) ? null : this.#double(index, Double.count);
  }

  /** Whether pidfds alone tell. */
  hasNoStream(index: number): boolean {
    return (this.#word(index, Word.flags) & Flag.noStream) !== 0;
  }

  /** Whether exits come with their programs. */
  namesPrograms(index: number): boolean {
    return (this.#word(index, Word.flags) & Flag.namesPrograms) !== 0;
  }

  /** `null`: nothing failed. */
  failure(index: number): ExitwatchError | null {
    const failure = this.#word(index, Word.uid);
    if (failure === 0) return null;
    return failureError(failure, this.#word(index, Word.status), this.#text(index));
  }

  #outcome(index: number, flags: number): Outcome {
    if ((flags & Flag.statusKnown) === 0) {
      const unknownReason =
        (flags & Flag.lost) !== 0
          ? 'lost'
          : (flags & Flag.notReaped) !== 0
            ? 'not-reaped'
            : (flags & Flag.notPermitted) !== 0
              ? 'not-permitted'
              : 'gone-before-watch';
      return { how: 'unknown', exitCode: null, signal: null, coreDumped: null, unknownReason };
    }
    const status = this.#word(index, Word.status);
    const coreKnown = (flags & Flag.coreKnown) !== 0;
    const key = coreKnown ? status : ~status;
    let outcome = this.#outcomes.get(key);
    if (outcome === undefined) {
      outcome = outcomeOf(status, coreKnown);
      this.#outcomes.set(key, outcome);
    }
    return outcome;
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

  /** Not before it was: a Date cuts off what is below a millisecond. */
  #tracedSince(index: number, startedAt: Date | null): Date | null {
    const fromMs = this.#double(index, Double.tracedFromNs) / 1e6;
    if (fromMs === 0) return startedAt;
    return new Date(Math.ceil(fromMs + this.#double(index, Double.clockMs)));
  }

  #text(index: number): string {
    return textAt(this.#bytes, index * RECORD_BYTES + NAME_OFFSET, NAME_BYTES);
  }
}

/** Processes of one name tend to end together: the last one is kept, with its bytes. */
class LastText {
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  readonly #offset: number;
  readonly #last: Int32Array;
  #text = '';

  constructor(records: ArrayBuffer, offset: number, bytes: number) {
    this.#words = new Int32Array(records);
    this.#bytes = Buffer.from(records);
    this.#offset = offset;
    this.#last = new Int32Array(bytes / 4);
  }

  /** Of this record. What follows its end is zeros. */
  at(index: number): string {
    const first = index * RECORD_WORDS + this.#offset / 4;
    const words = this.#words;
    const last = this.#last;
    for (let i = 0; i < last.length; i++) {
      const word = words[first + i];
      if (word !== last[i]) return this.#read(index, first);
      if (word === 0) break;
    }
    return this.#text;
  }

  #read(index: number, first: number): string {
    this.#last.set(this.#words.subarray(first, first + this.#last.length));
    const begin = index * RECORD_BYTES + this.#offset;
    this.#text = textAt(this.#bytes, begin, this.#last.byteLength);
    return this.#text;
  }
}

/** Up to the first zero. */
function textAt(bytes: Buffer, begin: number, length: number): string {
  const end = bytes.indexOf(0, begin);
  return bytes.toString('utf8', begin, end < 0 ? begin + length : Math.min(end, begin + length));
}

function outcomeOf(status: number, coreKnown: boolean): Outcome {
  const decoded = decodeWaitStatus(status);
  if (decoded.how === 'killed' && !coreKnown) {
    return { ...decoded, coreDumped: null, unknownReason: null };
  }
  return { ...decoded, unknownReason: null };
}
