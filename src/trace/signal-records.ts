import { SIGNAL_RECORD_BYTES } from '../addon.js';
import type { Ancestor } from '../events/signal-event.js';

/** The layout of native/core/signal_record.h. */
enum Field {
  time = 0,
  start = 8,
  inode = 16,
  cgroup = 24,
  clock = 40,
  senderStart = 48,
  info = 56,
  pid = 72,
  thread = 76,
  senderPid = 80,
  senderThread = 84,
  senderPidThere = 88,
  senderUid = 92,
  signal = 96,
  code = 100,
  flags = 104,
  name = 112,
  senderName = 128,
  ancestors = 144,
}

/** The machine's own, as the kernel writes. */
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

const NAME_BYTES = 16;
const ANCESTORS = 4;
const ANCESTOR_BYTES = 20;

export enum SignalFlag {
  noInfo = 1 << 0,
  privileged = 1 << 1,
  group = 1 << 2,
  senderExiting = 1 << 3,
  senderKernel = 1 << 4,
  deadly = 1 << 5,
  infoLost = 1 << 6,
  senderStack = 1 << 7,
  oom = 1 << 8,
  toItself = 1 << 9,
  senderTraces = 1 << 10,
  ignored = 1 << 11,
  taken = 1 << 12,
  traced = 1 << 13,
  inSyscall = 1 << 14,
  blocked = 1 << 15,
  mayBeInSyscall = 1 << 16,
}

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
  ancestors: Ancestor[];
}

/** A batch of signals, as the addon fills it. */
export class SignalRecords {
  readonly buffer: ArrayBuffer;
  readonly #view: DataView;
  readonly #bytes: Buffer;

  /** Room for so many, or what is there. */
  constructor(capacity: number | ArrayBuffer) {
    this.buffer =
      typeof capacity === 'number' ? new ArrayBuffer(capacity * SIGNAL_RECORD_BYTES) : capacity;
    this.#view = new DataView(this.buffer);
    this.#bytes = Buffer.from(this.buffer);
  }

  get capacity(): number {
    return this.buffer.byteLength / SIGNAL_RECORD_BYTES;
  }

  signal(index: number): TracedSignal {
    const at = index * SIGNAL_RECORD_BYTES;
    const timeNs = this.#double(at + Field.time);
    return {
      inode: this.#double(at + Field.inode),
      startTicks: this.#double(at + Field.start),
      pid: this.#word(at + Field.pid),
      name: this.#text(at + Field.name),
      signal: this.#word(at + Field.signal),
      timeNs,
      sentAtMs: timeNs / 1e6 + this.#view.getFloat64(at + Field.clock, LITTLE_ENDIAN),
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

  #ancestors(at: number): Ancestor[] {
    const ancestors: Ancestor[] = [];
    for (let i = 0; i < ANCESTORS; i++) {
      const place = at + i * ANCESTOR_BYTES;
      const pid = this.#word(place);
      if (pid === 0) break;
      ancestors.push({ pid, name: this.#text(place + 4) });
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
