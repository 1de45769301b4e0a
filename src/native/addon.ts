import type { ProcessState, Refusal, StreamUse, WatchResult } from './abi.js';

/** The interface of native/napi. It uses numbers; this file and its users give them names. */
export interface Addon {
  /** See {@link ABI_DIGEST}. */
  readonly abi: string;
  /** What the signal trace can be made to misread, to test its trial. */
  readonly spoils: readonly string[];
  identify(pid: number): NativeIdentity | undefined;
  /**
   * Sends a signal to exactly this process; 0 sends none. Returns what was found:
   * {@link ProcessState}.
   */
  signal(pid: number, startTicks: number, inode: number, signal: number): ProcessState;
  /**
   * The process that listens, or has connected, at the other end of a unix socket; undefined if
   * unknown.
   */
  peer(fd: number): SocketPeer | undefined;
  /** flock(2): whether this open file got the lock, which it keeps until it is closed. */
  lockFile(fd: number): boolean;
  /** To a unix socket; a leading `@` means an abstract one. */
  sendDatagram(path: string, text: string): void;
  /**
   * What pidfds can report here; throws if they are not available. Runs a child that exits at once.
   */
  probePidfd(): { inodes: boolean; exitStatus: boolean };
  ExitReader: new (options: {
    watchedOnly: boolean;
    forceCbpf: boolean;
    streamUse: StreamUse;
    /** Open a pidfd for each watched process. */
    opensPidfds: boolean;
    /** Report signals as well, if possible. */
    tracesSignals: boolean;
    /** One of {@link Addon.spoils}, or ''. */
    spoil: string;
    receiveBufferBytes: number;
    queueLimit: number;
    canaryIntervalMs: number;
    statusTimeoutMs: number;
  }) => ExitReader;
}

export interface NativeIdentity {
  startTicks: number;
  /** 0 if the kernel has none. */
  inode: number;
  isKernelThread: boolean;
}

export interface SocketPeer {
  pid: number;
  /** 0 if unknown. */
  inode: number;
}

export interface ExitReader {
  /**
   * While `onBatch` runs, `batch` and `signals` hold the given numbers of records and signals. The
   * signals that led to an exit come before the exit.
   */
  start(
    batch: ArrayBuffer,
    signals: ArrayBuffer,
    onBatch: (records: number, signals: number) => void,
  ): void;
  watch(pid: number, startTicks: number, inode: number): WatchResult;
  /** Watches whichever process has the pid; undefined: see what `watch()` says. */
  watchPid(pid: number): { result: WatchResult; startTicks: number; inode: number } | undefined;
  unwatch(pid: number, startTicks: number, inode: number): void;
  /** Call this once the reader is ready, and after it has changed its source. */
  filter(): NativeRefusal;
  /** The same for the signal trace. */
  trace(): NativeRefusal;
  /** What the signal trace reported about our own signals; undefined if there is no trace. */
  trial(): NativeTrial | undefined;
  /** Blocks until the signal trace runs, or cannot run, or the time is up. */
  awaitTrace(timeoutMs: number): void;
  /** The path of a cgroup v2; undefined if unknown, null if it cannot be determined right now. */
  cgroupPath(id: number): string | null | undefined;
  /** Whether to report signals at once; otherwise they come with the exits of their processes. */
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

/** The result of sending signals to a child of our own; see native/linux/bpf/trace_trial.h. */
export interface NativeTrial {
  /** Not 0 if the trial could not take place. */
  errno: number;
  syscall: string;
  /** Of the child. */
  pid: number;
  startTicks: number;
  inode: number;
  /** The thread that sent them, and our user, parent and name. */
  senderThread: number;
  senderUid: number;
  senderParent: number;
  senderName: string;
  /** What the trace reported about them. */
  records: ArrayBuffer;
}

export interface NativeStats {
  received: number;
  delivered: number;
  lost: number;
  gaps: number;
  queueDepth: number;
  /** 0 before the first event. */
  lastEventMs: number;
  rejected: number;
  withoutPidfd: number;
  wakeups: number;
  /** Missing before the start, and without the connector. */
  canaryAgeMs?: number;
}
