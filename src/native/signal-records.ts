import type { Ancestor as SenderAncestor } from '../events/signal-event.js';

import { ANCESTORS, Ancestor, NAME_BYTES, SignalRecord as Field } from './abi.js';

/** The machine's own, as the kernel writes. */
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Four words. */
export type SiginfoFields = readonly [number, number, number, number];

/** What the trace saw of one signal, in the kernel's words. */
export interface TracedSignal {
  /** Of the process that gets it; 0 where not known. */
  inode: number;
  startTicks: number;
  pid: number;
  name: string;
  /** 0: there is no signal; the OOM killer has chosen the process. */
  signal: number;
  /** CLOCK_MONOTONIC of the host. */
  timeNs: number;
  sentAtMs: number;
  /** Of the thread that it was sent to, or that took it. */
  thread: number;
  /** `si_code`. */
  code: number;
  /** What follows it in the siginfo, in words: `si_pid`, `si_uid`, two of `si_value`; or others. */
  info: SiginfoFields;
  /** {@link SignalFlag} */
  flags: number;
  /** With {@link SignalFlag.taken}, "sender" is the thread's tracer, or its parent. */
  senderPid: number;
  senderThread: number;
  /** When it started: CLOCK_BOOTTIME, to the microsecond. */
  senderStart: number;
  /** What the process calls the sender; 0 where it does not see that pid namespace. */
  senderPidThere: number;
  senderName: string;
  senderUid: number;
  /** The id of its cgroup in the v2 hierarchy; 0 where not known. */
  senderCgroup: number;
  ancestors: SenderAncestor[];
}

/** A batch of signals, as the addon fills it. */
export class SignalRecords {
  readonly buffer: ArrayBuffer;
  readonly #view: DataView;
  readonly #bytes: Buffer;

  /** Room for so many, or what is there. */
  constructor(capacity: number | ArrayBuffer) {
    this.buffer = typeof capacity === 'number' ? new ArrayBuffer(capacity * Field.bytes) : capacity;
    this.#view = new DataView(this.buffer);
    this.#bytes = Buffer.from(this.buffer);
  }

  get capacity(): number {
    return this.buffer.byteLength / Field.bytes;
  }

  signal(index: number): TracedSignal {
    const at = index * Field.bytes;
    const timeNs = this.#double(at + Field.timeNs);
    return {
      inode: this.#double(at + Field.inode),
      startTicks: this.#double(at + Field.startNs),
      pid: this.#word(at + Field.pid),
      name: this.#text(at + Field.name),
      signal: this.#word(at + Field.signal),
      timeNs,
      sentAtMs: timeNs / 1e6 + this.#view.getFloat64(at + Field.clockMs, LITTLE_ENDIAN),
      thread: this.#word(at + Field.thread),
      code: this.#word(at + Field.code),
      info: [
        this.#word(at + Field.info),
        this.#word(at + Field.info + 4),
        this.#word(at + Field.info + 8),
        this.#word(at + Field.info + 12),
      ],
      flags: this.#word(at + Field.flags),
      senderPid: this.#word(at + Field.senderPid),
      senderThread: this.#word(at + Field.senderThread),
      senderStart: Math.floor(this.#double(at + Field.senderStart) / 1000),
      senderPidThere: this.#word(at + Field.senderPidThere),
      senderName: this.#text(at + Field.senderName),
      senderUid: this.#word(at + Field.senderUid) >>> 0,
      senderCgroup: this.#double(at + Field.cgroup),
      ancestors: this.#ancestors(at + Field.ancestors),
    };
  }

  #ancestors(at: number): SenderAncestor[] {
    const ancestors: SenderAncestor[] = [];
    for (let i = 0; i < ANCESTORS; i++) {
      const place = at + i * Ancestor.bytes;
      const pid = this.#word(place + Ancestor.pid);
      if (pid === 0) break;
      ancestors.push({ pid, name: this.#text(place + Ancestor.name) });
    }
    return ancestors;
  }

  #word(at: number): number {
    return this.#view.getInt32(at, LITTLE_ENDIAN);
  }

  /** A whole number of 64 bits that is below 2^53. */
  #double(at: number): number {
    return Number(this.#view.getBigUint64(at, LITTLE_ENDIAN));
  }

  #text(at: number): string {
    const end = this.#bytes.indexOf(0, at);
    return this.#bytes.toString('utf8', at, Math.min(end, at + NAME_BYTES));
  }
}
