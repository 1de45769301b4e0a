import { readFileSync } from 'node:fs';
import { getSystemErrorName } from 'node:util';

import { warnOfMissingAddon } from './addon-warning.js';
import { ExitwatchError, type ExitwatchErrorCode } from './common/errors.js';
import { loadNativeBinary } from './native-binary.js';

/** What native/napi offers. It knows numbers; this file and its users know the words. */
export interface Addon {
  readonly recordBytes: number;
  readonly signalRecordBytes: number;
  /** What the signal trace can be made to misread, for tests of its trial. */
  readonly spoils: readonly string[];
  identify(pid: number): NativeIdentity | undefined;
  /** Sends a signal to this very process; 0 sends none. What became of it: {@link Life}. */
  signal(pid: number, startTicks: number, inode: number, signal: number): Life;
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
    classicFilter: boolean;
    streamUse: StreamUse;
    /** Watched processes have a pidfd each. */
    guarded: boolean;
    /** Signals are told, too, where that can be had. */
    traced: boolean;
    /** One of {@link Addon.spoils}, or nothing. */
    spoil: string;
    receiveBufferBytes: number;
    queueLimit: number;
    canaryIntervalMs: number;
    statusTimeoutMs: number;
  }) => ExitReader;
}

/** Of the child that the signal trace is tried with (native/linux/trial_child.h). */
export const TRIAL_CHILD_NAME = 'exitwatch-trial';

/** `ExitReader::StreamUse` of native/linux/exit_reader.h. */
export enum StreamUse {
  required,
  preferred,
  none,
}

/** `ProcessWitness::Life` of native/core/process_witness.h. */
export enum Life {
  gone,
  /** Every thread has ended; the parent has not reaped it yet. */
  dead,
  alive,
  unknown,
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
  /** `WatchedProcesses::Result` of native/linux/watched_processes.h. */
  watch(pid: number, startTicks: number, inode: number): number;
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
  /** 0 where it is. */
  refusal: number;
  errno: number;
  detail: string;
}

/** What came of signals that a child of ours was sent; see native/linux/trace_trial.h. */
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
  unguarded: number;
  wakeups: number;
  /** Missing before the start, and without the connector. */
  canaryAgeMs?: number;
}

/** Tried once. */
let result: Addon | ExitwatchError | undefined;

/** The size of what native/core/record.h describes. */
export const RECORD_BYTES = 184;

/** The size of what native/core/signal_record.h describes. */
export const SIGNAL_RECORD_BYTES = 224;

/** @throws ExitwatchError `ERR_EXITWATCH_NO_ADDON` where no binary can be used. */
export function loadAddon(): Addon {
  result ??= loadOrWarn();
  if (result instanceof ExitwatchError) throw result;
  return result;
}

/** Why the addon cannot be used; `null` where it can. */
export function addonRefusal(): ExitwatchError | null {
  result ??= loadOrWarn();
  return result instanceof ExitwatchError ? result : null;
}

/** On Linux it is expected, and doing without it is worth a word; elsewhere there is none. */
function loadOrWarn(): Addon | ExitwatchError {
  if (process.platform !== 'linux') {
    return new ExitwatchError(
      'ERR_EXITWATCH_NO_ADDON',
      `there is no native addon for ${process.platform}: it reads Linux's kernel`,
    );
  }
  const loaded = load();
  if (loaded instanceof ExitwatchError) warnOfMissingAddon(loaded);
  return loaded;
}

function load(): Addon | ExitwatchError {
  const { bun } = process.versions;
  if (bun !== undefined) {
    return new ExitwatchError(
      'ERR_EXITWATCH_NO_ADDON',
      `Bun ${bun} lacks what the native addon takes of libuv (uv_poll), and ends when that is called`,
      { remedy: 'run it with Node.js' },
    );
  }
  const isUsable = (binary: unknown) => {
    const { recordBytes, signalRecordBytes } = binary as Partial<Addon>;
    return recordBytes === RECORD_BYTES && signalRecordBytes === SIGNAL_RECORD_BYTES;
  };
  const { binary, tried, isBundled } = loadNativeBinary(isUsable);
  if (binary !== undefined) return binary as Addon;
  const reasons = tried.map(({ path, failure }) => `${path} ${failure}`).join('; ');
  return new ExitwatchError(
    'ERR_EXITWATCH_NO_ADDON',
    `no native addon for ${process.platform}-${process.arch} can be loaded: ${reasons}`,
    { remedy: isBundled ? BUNDLE_REMEDY : BUILD_REMEDY },
  );
}

const BUILD_REMEDY =
  'build one: `npx exitwatch build-native`, with a C++ compiler, make and Python 3';

const BUNDLE_REMEDY =
  'keep exitwatch out of the bundle, or copy its folder prebuilds beside the bundle: ' +
  'docs/bundlers.md of the package tells how';

/** What is wrong, and what to do about it, for `Failure` of native/linux/system_error.h, in its order. */
const FAILURES: readonly (readonly [ExitwatchErrorCode, string, string?])[] = [
  ['ERR_EXITWATCH_SYSTEM', 'a system call failed'],
  ['ERR_EXITWATCH_SYSTEM', 'a system call failed'],
  [
    'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE',
    "the proc connector exists in the host's network namespace only, and this process is in " +
      'another one',
    "run it in the host's: --network=host for a container",
  ],
  [
    'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE',
    "the proc connector serves the host's pid namespace only, and this process is in another one",
    "run it in the host's: --pid=host for a container",
  ],
  [
    'ERR_EXITWATCH_FOREIGN_USER_NAMESPACE',
    "the proc connector serves the host's user namespace only, and this process is in another one",
    "run it in the host's: not in a rootless container",
  ],
  [
    'ERR_EXITWATCH_NOT_PERMITTED',
    'before Linux 6.6 the proc connector takes root or CAP_NET_ADMIN in the host',
    'give it CAP_NET_ADMIN, or run Linux 6.6 or later',
  ],
  [
    'ERR_EXITWATCH_NO_CONNECTOR',
    'this kernel was built without the proc connector',
    'run one with CONFIG_CONNECTOR and CONFIG_PROC_EVENTS',
  ],
  [
    'ERR_EXITWATCH_NO_PIDFD',
    'pidfd_open(2) is missing or forbidden',
    'allow it in the seccomp filter; it takes Linux 5.3',
  ],
  [
    'ERR_EXITWATCH_NO_PROC',
    "/proc is not mounted, hides this process, or is another pid namespace's",
    'mount /proc of this pid namespace, without hidepid',
  ],
  [
    'ERR_EXITWATCH_SILENT',
    'the kernel took the subscription but sends no events: it has no process events, or somebody ' +
      'has silenced them for the whole host',
    'run a kernel with CONFIG_PROC_EVENTS, or find who silenced it',
  ],
  [
    'ERR_EXITWATCH_DESCRIPTOR_LIMIT',
    'there is no descriptor to spare for another watch, which takes one here',
    'raise RLIMIT_NOFILE: LimitNOFILE= in a systemd unit, --ulimit nofile= for a container, ulimit -n',
  ],
];

/** The soft limit, as the kernel has it for this process. */
function descriptorLimit(): string {
  const limits = readFileSync('/proc/self/limits', 'latin1');
  return /^Max open files\s+(\S+)/m.exec(limits)?.[1] ?? 'not known';
}

/** The error for a failure that the addon told as `{ failure, errno, syscall }`. */
export function failureError(failure: number, errno: number, syscall: string): ExitwatchError {
  const [code, sentence, remedy] = FAILURES[failure] ?? ['ERR_EXITWATCH_SYSTEM', ''];
  const detail =
    code === 'ERR_EXITWATCH_SYSTEM'
      ? `${syscall}: ${getSystemErrorName(-errno)}`
      : code === 'ERR_EXITWATCH_DESCRIPTOR_LIMIT'
        ? `${sentence} (RLIMIT_NOFILE is ${descriptorLimit()})`
        : sentence;
  return new ExitwatchError(code, detail, { remedy, errno, syscall });
}

/** Turns what the addon threw into the error that users see; anything else stays as it is. */
export function translateFailure(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !('failure' in thrown)) return thrown;
  const { failure, errno, syscall } = thrown as Error & Record<string, unknown>;
  return failureError(Number(failure), Number(errno), String(syscall));
}
