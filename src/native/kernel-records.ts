import type { ExitwatchError } from '../common/errors.js';
import type { ExitEvent, Gap, Outcome } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';
import type { Usage } from '../events/usage.js';
import { decodeWaitStatus } from '../events/wait-status.js';
import { whereaboutsOf } from '../where/whereabouts.js';

import {
  EXECUTABLE_BYTES,
  ExitFlag,
  ExitRecord,
  GapReason,
  GapRecord,
  NAME_BYTES,
  RecordKind,
  SourceRecord,
} from './abi.js';
import { failureError } from './failures.js';
import type { IdWriter } from './id-writer.js';
import { LastText, textAt } from './last-text.js';

/** The size of a record in a batch: that of the largest kind. */
const RECORD_BYTES = Math.max(ExitRecord.bytes, GapRecord.bytes, SourceRecord.bytes);

/** The exit of a process, as far as the signal trace needs it. */
export interface End {
  pid: number;
  /** 0 if unknown. */
  inode: number;
  startTicks: number;
  /** CLOCK_MONOTONIC of the host; not earlier than the exit. */
  timeNs: number;
  /** `null` if no signal killed it. */
  signal: ExitEvent['signal'];
}

/** Resolves ids of cgroups. */
interface CgroupNames {
  path(id: number): string | null;
}

const GAP_REASONS: Readonly<Record<keyof typeof GapReason, Gap['reason']>> = {
  receiveBuffer: 'receive-buffer',
  queueLimit: 'queue-limit',
  silenced: 'silenced',
  traceBuffer: 'trace-buffer',
};

const NO_SIGNALS: readonly SignalSender[] = Object.freeze([]);

/** A batch of records that the addon fills. */
export class KernelRecords {
  readonly buffer: ArrayBuffer;
  readonly #doubles: Float64Array;
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  readonly #ids: IdWriter;
  readonly #hasInodes: boolean;
  readonly #cgroups: CgroupNames;
  readonly #names: LastText;
  readonly #executables: LastText;
  readonly #parentNames: LastText;
  /** By wait status; there are only a few. */
  readonly #outcomes = new Map<number, Outcome>();

  /**
   * `hasInodes`: identities have inodes. An exit without its inode then gets no id from its start,
   * because no identity would match, and two processes with the same pid may have started in the
   * same clock tick.
   */
  constructor(capacity: number, cgroups: CgroupNames, ids: IdWriter, hasInodes: boolean) {
    this.#ids = ids;
    this.#hasInodes = hasInodes;
    this.#cgroups = cgroups;
    this.buffer = new ArrayBuffer(capacity * RECORD_BYTES);
    this.#doubles = new Float64Array(this.buffer);
    this.#words = new Int32Array(this.buffer);
    this.#bytes = Buffer.from(this.buffer);
    this.#names = new LastText(this.buffer, RECORD_BYTES, ExitRecord.name, NAME_BYTES);
    this.#executables = new LastText(
      this.buffer,
      RECORD_BYTES,
      ExitRecord.executable,
      EXECUTABLE_BYTES,
    );
    this.#parentNames = new LastText(this.buffer, RECORD_BYTES, ExitRecord.parentName, NAME_BYTES);
  }

  kind(index: number): keyof typeof RecordKind {
    return RecordKind[this.#word(index, ExitRecord.kind)] as keyof typeof RecordKind;
  }

  /** Without the findings of the signal trace, except whether it was running. */
  exit(index: number): ExitEvent {
    const flags = this.#word(index, ExitRecord.flags);
    const pid = this.#word(index, ExitRecord.pid);
    const parentPid = this.#word(index, ExitRecord.parentPid);
    const timeNs = this.#double(index, ExitRecord.timeNs);
    const startKnown = (flags & ExitFlag.startKnown) !== 0;
    const isTraced = (flags & ExitFlag.traced) !== 0;
    const isKernelTime = (flags & ExitFlag.kernelTime) !== 0;
    const uncertaintyMs = this.#double(index, ExitRecord.uncertaintyNs) / 1e6;
    const cgroup = this.#cgroups.path(this.#double(index, ExitRecord.cgroup));
    const { unit, container, pod, machine } = whereaboutsOf(cgroup);
    const startedAt = startKnown ? new Date(this.#double(index, ExitRecord.startedMs)) : null;
    const tracedSince = isTraced ? this.#tracedSince(index, startedAt) : null;
    // Field by field: a spread would cost more than everything else.
    const { how, exitCode, signal, coreDumped, unknownReason } = this.#outcome(index, flags);
    return {
      event: 'exit',
      id: this.exitId(index),
      pid,
      parentPid: parentPid === 0 ? null : parentPid,
      parentName: this.#parentNames.at(index) || null,
      name: (flags & ExitFlag.nameKnown) !== 0 ? this.#names.at(index) : null,
      program: this.#executables.at(index) || null,
      uid: (flags & ExitFlag.uidKnown) !== 0 ? this.#word(index, ExitRecord.uid) >>> 0 : null,
      cgroup,
      unit,
      container,
      pod,
      machine,
      startedAt,
      exitedAt: dateOf(timeNs, this.#double(index, ExitRecord.clockMs)),
      exitedNs: isKernelTime ? timeNs : null,
      // With the kernel's time stamp, less than a millisecond is delivery time, not uncertainty.
      uncertaintyMs: isKernelTime ? Math.floor(uncertaintyMs) : Math.ceil(uncertaintyMs),
      // Only the connector has the kernel's time stamp; otherwise a pidfd reported the exit.
      source: isKernelTime ? 'connector' : 'pidfd',
      isRepeated: false,
      lossless: (flags & ExitFlag.lossless) !== 0,
      traced: isTraced,
      tracedSince,
      requestsSince: tracedSince,
      sender: null,
      raisedAfter: null,
      signalsReceived: NO_SIGNALS,
      oom: null,
      commandLine: null,
      usage: (flags & ExitFlag.usageKnown) === 0 ? null : this.#usage(index, flags),
      how,
      exitCode,
      signal,
      coreDumped,
      unknownReason,
    } as ExitEvent;
  }

  /** The number of its command line; 0 if unknown. */
  commandLine(index: number): number {
    return this.#double(index, ExitRecord.commandLine);
  }

  /** The same exit, for the signal trace. */
  end(index: number, { signal }: Pick<ExitEvent, 'signal'>): End {
    return {
      pid: this.#word(index, ExitRecord.pid),
      inode: this.#double(index, ExitRecord.inode),
      startTicks: this.#double(index, ExitRecord.startTicks),
      timeNs: this.#double(index, ExitRecord.timeNs),
      signal,
    };
  }

  /** The `id` of an exit: made from the best that is known about the process, like {@link identityId}. */
  exitId(index: number): string {
    const pid = this.#word(index, ExitRecord.pid);
    const inode = this.#double(index, ExitRecord.inode);
    if (inode !== 0) return this.#ids.id(pid, '', inode);
    const startKnown = (this.#word(index, ExitRecord.flags) & ExitFlag.startKnown) !== 0;
    if (startKnown && !this.#hasInodes) {
      return this.#ids.id(pid, 't', this.#double(index, ExitRecord.startTicks));
    }
    return this.#ids.id(pid, 'x', this.#double(index, ExitRecord.timeNs));
  }

  /** The id of a process that was sent a signal. */
  idOf({ pid, inode, startTicks }: Pick<End, 'pid' | 'inode' | 'startTicks'>): string {
    return inode !== 0 ? this.#ids.id(pid, '', inode) : this.#ids.id(pid, 't', startTicks);
  }

  /**
   * Whether an exit is only for its watch, because the stream has yet to report it to all
   * listeners.
   */
  isOnlyForWatcher(index: number): boolean {
    return (this.#word(index, ExitRecord.flags) & ExitFlag.onlyForWatcher) !== 0;
  }

  gap(index: number): Gap {
    const name = GapReason[this.#word(index, GapRecord.reason)] as keyof typeof GapReason;
    const reason = GAP_REASONS[name];
    const clockMs = this.#double(index, GapRecord.clockMs);
    return {
      event: 'gap',
      from: dateOf(this.#double(index, GapRecord.fromNs), clockMs),
      to: dateOf(this.#double(index, GapRecord.toNs), clockMs),
      lost: reason === 'silenced' ? null : this.#double(index, GapRecord.lost),
      reason,
      recovered: this.#word(index, GapRecord.recovered),
    };
  }

  /** When the source of exits changed. */
  sourceDate(index: number): Date {
    const clockMs = this.#double(index, SourceRecord.clockMs);
    return dateOf(this.#double(index, SourceRecord.timeNs), clockMs);
  }

  receiveBufferBytes(index: number): number | null {
    return this.hasStream(index) ? this.#double(index, SourceRecord.bufferBytes) : null;
  }

  /** If not, only pidfds report exits. */
  hasStream(index: number): boolean {
    return this.#word(index, SourceRecord.hasStream) !== 0;
  }

  /** Whether exits come with program names. */
  namesPrograms(index: number): boolean {
    return this.#word(index, SourceRecord.namesPrograms) !== 0;
  }

  /** `null`: nothing failed. */
  failure(index: number): ExitwatchError | null {
    const failure = this.#word(index, SourceRecord.failure);
    if (failure === 0) return null;
    const syscall = textAt(this.#bytes, index * RECORD_BYTES + SourceRecord.syscall, NAME_BYTES);
    return failureError(failure, this.#word(index, SourceRecord.errorNumber), syscall);
  }

  #usage(index: number, flags: number): Usage {
    const hasIo = (flags & ExitFlag.ioKnown) !== 0;
    return {
      userMs: this.#double(index, ExitRecord.userNs) / 1e6,
      systemMs: this.#double(index, ExitRecord.systemNs) / 1e6,
      maxRssBytes: this.#double(index, ExitRecord.maxRssBytes),
      readBytes: hasIo ? this.#double(index, ExitRecord.readBytes) : null,
      writtenBytes: hasIo ? this.#double(index, ExitRecord.writtenBytes) : null,
    };
  }

  #outcome(index: number, flags: number): Outcome {
    if ((flags & ExitFlag.statusKnown) === 0) {
      const unknownReason =
        (flags & ExitFlag.lost) !== 0
          ? 'lost'
          : (flags & ExitFlag.notReaped) !== 0
            ? 'not-reaped'
            : (flags & ExitFlag.notPermitted) !== 0
              ? 'not-permitted'
              : 'gone-before-watch';
      return { how: 'unknown', exitCode: null, signal: null, coreDumped: null, unknownReason };
    }
    const status = this.#word(index, ExitRecord.status);
    const coreKnown = (flags & ExitFlag.coreKnown) !== 0;
    const key = coreKnown ? status : ~status;
    let outcome = this.#outcomes.get(key);
    if (outcome === undefined) {
      outcome = outcomeOf(status, coreKnown);
      this.#outcomes.set(key, outcome);
    }
    return outcome;
  }

  #double(index: number, field: number): number {
    return this.#doubles[(index * RECORD_BYTES + field) >>> 3] ?? NaN;
  }

  #word(index: number, field: number): number {
    return this.#words[(index * RECORD_BYTES + field) >>> 2] ?? 0;
  }

  /** Rounded up, because a Date drops fractions of a millisecond. */
  #tracedSince(index: number, startedAt: Date | null): Date | null {
    const fromMs = this.#double(index, ExitRecord.tracedFromNs) / 1e6;
    if (fromMs === 0) return startedAt;
    return new Date(Math.ceil(fromMs + this.#double(index, ExitRecord.clockMs)));
  }
}

function dateOf(timeNs: number, clockMs: number): Date {
  return new Date(timeNs / 1e6 + clockMs);
}

function outcomeOf(status: number, coreKnown: boolean): Outcome {
  const decoded = decodeWaitStatus(status);
  if (decoded.how === 'killed' && !coreKnown) {
    return { ...decoded, coreDumped: null, unknownReason: null };
  }
  return { ...decoded, unknownReason: null };
}
