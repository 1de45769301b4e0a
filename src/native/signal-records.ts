import {
  ANCESTORS,
  Ancestor,
  NAME_BYTES,
  SENDER_PROGRAM_BYTES,
  SignalRecord as Field,
} from './abi.js';

/** The byte order of this machine, which the kernel uses. */
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

const CGROUP_ID_BYTES = 8;

/** Four words. */
export type SiginfoFields = readonly [number, number, number, number];

/** An ancestor of a sender; `cgroup` is the id of its cgroup v2, 0 if unknown. */
export interface TracedAncestor {
  pid: number;
  name: string;
  cgroup: number;
}

/** What the trace saw of one signal, in the kernel's terms. */
export interface TracedSignal {
  /** Of the process that receives it; 0 if unknown. */
  inode: number;
  startTicks: number;
  pid: number;
  name: string;
  /** 0: not a signal, but the OOM killer chose the process. */
  signal: number;
  /** CLOCK_MONOTONIC of the host. */
  timeNs: number;
  sentAtMs: number;
  /** The thread that it was sent to, or that took it. */
  thread: number;
  /** `si_code`. */
  code: number;
  /** The siginfo after `si_code`: `si_pid`, `si_uid`, two words of `si_value`; or other fields. */
  info: SiginfoFields;
  /** {@link SignalFlag} */
  flags: number;
  /**
   * With {@link SignalFlag.taken}, the "sender" is the thread's debugger or, without one, its
   * parent.
   */
  senderPid: number;
  senderThread: number;
  /** When it started: CLOCK_MONOTONIC of the host, in microseconds; 0 if unknown. */
  senderStart: number;
  /** The sender's pid as the process sees it; 0 if it does not see that pid namespace. */
  senderPidThere: number;
  senderName: string;
  /** `null`: unknown, or longer than there is room for. */
  senderProgram: string | null;
  senderUid: number;
  /** The id of its cgroup v2; 0 if unknown. */
  senderCgroup: number;
  ancestors: TracedAncestor[];
  /** The number of the sender's command line; 0 if unknown. */
  senderCommandLine: number;
}

/** A batch of signals that the addon fills. */
export class SignalRecords {
  readonly buffer: ArrayBuffer;
  readonly #view: DataView;
  readonly #bytes: Buffer;

  /** Makes room for that many signals, or reads an existing buffer. */
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
      senderProgram: this.#senderProgram(at + Field.senderProgram),
      senderUid: this.#word(at + Field.senderUid) >>> 0,
      senderCgroup: this.#double(at + Field.cgroup),
      ancestors: this.#ancestors(at),
      senderCommandLine: this.#double(at + Field.memory),
    };
  }

  #senderProgram(at: number): string | null {
    // A name that fills its room may have been cut.
    if (this.#bytes[at + SENDER_PROGRAM_BYTES - 2] !== 0) return null;
    return this.#text(at, SENDER_PROGRAM_BYTES) || null;
  }

  #ancestors(at: number): TracedAncestor[] {
    const ancestors: TracedAncestor[] = [];
    for (let i = 0; i < ANCESTORS; i++) {
      const place = at + Field.ancestors + i * Ancestor.bytes;
      const pid = this.#word(place + Ancestor.pid);
      if (pid === 0) break;
      const cgroup = this.#double(at + Field.ancestorCgroups + i * CGROUP_ID_BYTES);
      ancestors.push({ pid, name: this.#text(place + Ancestor.name), cgroup });
    }
    return ancestors;
  }

  #word(at: number): number {
    return this.#view.getInt32(at, LITTLE_ENDIAN);
  }

  /** An unsigned 64-bit integer below 2^53. */
  #double(at: number): number {
    return Number(this.#view.getBigUint64(at, LITTLE_ENDIAN));
  }

  #text(at: number, bytes = NAME_BYTES): string {
    const end = this.#bytes.indexOf(0, at);
    return this.#bytes.toString('utf8', at, Math.min(end, at + bytes));
  }
}
