import type { ProcessState, Refusal, StreamUse, WatchResult } from './abi.js';

/** What native/napi offers. It knows numbers; this file and its users know the words. */
export interface Addon {
  /** See {@link ABI_DIGEST}. */
  readonly abi: string;
  /** What the signal trace can be made to misread, for tests of its trial. */
  readonly spoils: readonly string[];
  identify(pid: number): NativeIdentity | undefined;
  /** Sends a signal to this very process; 0 sends none. What became of it: {@link ProcessState}. */
  signal(pid: number, startTicks: number, inode: number, signal: number): ProcessState;
  /** Who listens, or has connected, at the other end of a unix socket; undefined where not known. */
  peer(fd: number): SocketPeer | undefined;
  /** flock(2): whether this open file has the lock, until it is closed. */
  lockFile(fd: number): boolean;
  /** To a unix socket; `@` begins the name of an abstract one. */
  sendDatagram(path: string, text: string): void;
  /** What pidfds can tell here; throws where there are none. Runs a child that ends at once. */
  probePidfd(): { inodes: boolean; exitStatus: boolean };
  ExitReader: new (options: {
    watchedOnly: boolean;
    forceCbpf: boolean;
    streamUse: StreamUse;
    /** Watched processes have a pidfd each. */
    opensPidfds: boolean;
    /** Signals are reported, too, where that can be had. */
    tracesSignals: boolean;
    /** One of {@link Addon.spoils}, or nothing. */
    spoil: string;
    receiveBufferBytes: number;
    queueLimit: number;
    canaryIntervalMs: number;
    statusTimeoutMs: number;
  }) => ExitReader;
}

export interface NativeIdentity {
  startTicks: number;
  /** 0 where the kernel has none. */
  inode: number;
  isKernelThread: boolean;
}

export interface SocketPeer {
  pid: number;
  /** 0 where the kernel does not tell it. */
  inode: number;
}

export interface ExitReader {
  /**
   * `onBatch` finds so many records in `batch`, and so many signals in `signals`, until it returns.
   * The signals that led to an end come before the end.
   */
  start(
    batch: ArrayBuffer,
    signals: ArrayBuffer,
    onBatch: (records: number, signals: number) => void,
  ): void;
  watch(pid: number, startTicks: number, inode: number): WatchResult;
  unwatch(pid: number, startTicks: number, inode: number): void;
  /** To be asked once the reader is ready, and when it has changed its source. */
  filter(): NativeRefusal;
  /** The same of the signal trace. */
  trace(): NativeRefusal;
  /** What the signal trace told of our own signals; undefined where there is none. */
  trial(): NativeTrial | undefined;
  /** Blocks until signals are traced, or will not be; for so many ms at most. */
  awaitTrace(timeoutMs: number): void;
  /** By its id, in the v2 hierarchy; undefined where it cannot be told, null where it cannot just now. */
  cgroupPath(id: number): string | null | undefined;
  /** Whether signals are to be told at once; otherwise, before the ends of their processes. */
  listen(listens: boolean): void;
  stats(): NativeStats;
  ref(): void;
  unref(): void;
  close(): void;
}

/** Why a BPF program is not in use; see src/sources/downgrade.ts. */
export interface NativeRefusal {
  refusal: Refusal;
  errno: number;
  detail: string;
}

/** What came of signals that a child of ours was sent; see native/linux/bpf/trace_trial.h. */
export interface NativeTrial {
  /** Not 0 where it could not be held. */
  errno: number;
  syscall: string;
  /** Of the child. */
  pid: number;
  startTicks: number;
  inode: number;
  /** The thread that sent them, our user, our parent and our name. */
  senderThread: number;
  senderUid: number;
  senderParent: number;
  senderName: string;
  /** What the trace told of them. */
  records: ArrayBuffer;
}

export interface NativeStats {
  received: number;
  delivered: number;
  lost: number;
  gaps: number;
  queueDepth: number;
  /** 0 before the first. */
  lastEventMs: number;
  rejected: number;
  withoutPidfd: number;
  wakeups: number;
  /** Missing before the start, and without the connector. */
  canaryAgeMs?: number;
}
