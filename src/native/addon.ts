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
  sendDatagram(path: string, text: string, descriptors?: readonly number[]): void;
  /** Becomes another program, in this process; returns only to throw. */
  exec(path: string, args: readonly string[], env: readonly string[]): never;
  /** Has the descriptor closed in what we run. `false`: it is not open. */
  keepFromChildren(fd: number): boolean;
  /** Close it. `undefined`: there is no such process. */
  openPidfd(pid: number): number | undefined;
  /** `status`: the wait status, once the process was reaped (Linux 6.15). */
  lookAtPidfd(fd: number): { state: ProcessState; inode: number; status?: number };
  /**
   * What pidfds can report here; throws if they are not available. Runs a child that exits at once.
   */
  probePidfd(): { inodes: boolean; exitStatus: boolean };
  Recorder: new () => NativeRecorder;
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
    /** How long exits may wait for others, so that they cross together. */
    maxDelayMs: number;
    /** Report command lines, of processes that exit and of senders. */
    commandLines: boolean;
  }) => ExitReader;
}

/** See native/linux/recorder/recorder.h. */
export interface NativeRecorder {
  /** Loads and attaches the programs. Call it once, on a new object; or `open()`. */
  create(options: {
    slots: number;
    /** 0: record only watched processes. */
    ringBytes: number;
    signalBytes: number;
    owner: number;
    version: string;
    stateDir: string;
  }): NativeRefusal;
  /** Sends signals to a child, and returns what the new recorder has of that. */
  trial(): NativeTrial;
  /** It has passed its trial: records that for whoever opens it later. */
  trust(): void;
  /** From now on watches the processes that the other one watches, too. */
  inherit(other: NativeRecorder): void;
  /** Pins everything in a folder of a BPF file system. */
  pin(folder: string): void;
  /** All that it consists of; the descriptors stay its own. */
  parts(): RecorderPart[];
  /** Opens a recorder from copies of its parts; returns what `open()` does. */
  adopt(parts: readonly RecorderPart[]): number;
  /** 0, or the errno for which it cannot be used: EPROTO for another layout. */
  open(folder: string): number;
  /** Undefined if the folder is not a recorder's. */
  about(): NativeRecorderAbout | undefined;
  /** 0, or an errno: E2BIG if the table is full. */
  watch(pid: number, startTicks: number, inode: number): number;
  forget(pid: number, startTicks: number, inode: number): void;
  /** How many processes are in the table. */
  watched(): number;
  /** Forgets all other processes; three numbers for each: pid, startTicks, inode. */
  retain(identities: Float64Array): void;
  /**
   * The exit goes to the beginning of `batch`; returns how many signals are in `signals`. Undefined if
   * the process has not exited.
   */
  find(
    pid: number,
    startTicks: number,
    inode: number,
    batch: ArrayBuffer,
    signals: ArrayBuffer,
  ): number | undefined;
  /**
   * Reads on, without removing anything. `ends` gets, for each record in order, the position to commit
   * after it; it is negative if the record is a signal.
   */
  readRing(batch: ArrayBuffer, signals: ArrayBuffer, ends: ArrayBuffer): number;
  readSignals(batch: ArrayBuffer, signals: ArrayBuffer, ends: ArrayBuffer): number;
  /** The position after the latest record of the ring. */
  ringEnd(): number;
  /** What the ring has before this position may have been delivered. */
  delivered(): number;
  setDelivered(position: number): void;
  commitRing(end: number): void;
  commitSignals(end: number): void;
  /** Bytes of records that were not committed. */
  used(): { ring: number; signals: number };
  /** What did not fit. */
  losses(): Record<'exits' | 'signals' | 'watched', NativeLoss>;
  /** So many of the exits that did not fit are no longer to be reported. */
  acknowledgeLoss(count: number): void;
  /** For how many ms the programs go on; negative if they have stopped. */
  lease(): number;
  setLease(ms: number): void;
  cgroupPath(id: number): string | null | undefined;
  programs(): NativeProgram[];
  close(): void;
}

export interface RecorderPart {
  name: string;
  fd: number;
}

export interface NativeRecorderAbout {
  layout: number;
  slots: number;
  ringBytes: number;
  signalBytes: number;
  /** CLOCK_MONOTONIC. */
  sinceNs: number;
  owner: number;
  isTrusted: boolean;
  /** Its programs are attached. */
  isRecording: boolean;
  /** Processes are known by their inodes in pidfs, not by pid and start. */
  hasInodes: boolean;
  version: string;
  stateDir: string;
}

export interface NativeLoss {
  count: number;
  /** CLOCK_REALTIME. Of the first one that was not acknowledged; 0 if there was none. */
  firstMs: number;
  /** Of the last one ever; 0 if there was none. */
  lastMs: number;
}

export interface NativeProgram {
  name: string;
  id: number;
  /** 0 unless kernel.bpf_stats_enabled is set. */
  runs: number;
  runNs: number;
  /** Runs that the kernel left out. */
  misses: number;
}

export interface NativeIdentity {
  startTicks: number;
  /** 0 if the kernel has none. */
  inode: number;
  isKernelThread: boolean;
}

export interface SocketPeer {
  pid: number;
  /** The effective uid when it connected, or began to listen. */
  uid: number;
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
  /** The arguments, each with a NUL behind it; undefined if they are not known any more. */
  commandLine(number: number): { bytes: Buffer; isCut: boolean } | undefined;
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
