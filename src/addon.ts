import { join } from 'node:path';
import { getSystemErrorName } from 'node:util';

import loadBinding = require('bindings');

import { ExitwatchError, type ExitwatchErrorCode } from './errors.js';

/** What native/napi offers. It knows numbers; this file and its users know the words. */
export interface Addon {
  readonly recordBytes: number;
  identify(pid: number): NativeIdentity | undefined;
  ExitReader: new (options: {
    watchedOnly: boolean;
    classicFilter: boolean;
    receiveBufferBytes: number;
    queueLimit: number;
    canaryIntervalMs: number;
  }) => ExitReader;
}

export interface NativeIdentity {
  startTicks: number;
  /** 0 where the kernel has none. */
  inode: number;
  isKernelThread: boolean;
}

export interface ExitReader {
  /** `onBatch` finds `count` records in `batch`, until it returns. */
  start(batch: ArrayBuffer, onBatch: (count: number) => void): void;
  /** False where there is no such process now. */
  watch(pid: number, startTicks: number, inode: number): boolean;
  unwatch(pid: number, startTicks: number, inode: number): void;
  /** To be asked once the reader is ready. */
  filter(): NativeFilter;
  stats(): NativeStats;
  ref(): void;
  unref(): void;
  close(): void;
}

/** Why the group-aware filter is not in use; see src/sources/filter-downgrade.ts. */
export interface NativeFilter {
  /** 0 where it is. */
  refusal: number;
  errno: number;
  detail: string;
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
  wakeups: number;
  /** Missing before the start. */
  canaryAgeMs?: number;
}

let loaded: Addon | undefined;

/** @throws ExitwatchError `ERR_EXITWATCH_NO_ADDON` where no binary can be used. */
export function loadAddon(): Addon {
  if (loaded !== undefined) return loaded;
  if (process.platform !== 'linux') {
    throw new ExitwatchError(
      'ERR_EXITWATCH_NO_ADDON',
      `exitwatch reads Linux's kernel; it has no source for ${process.platform} yet`,
    );
  }
  const root = join(__dirname, '..');
  const prebuilds = ['module_root', 'prebuilds', `${process.platform}-${process.arch}`];
  try {
    loaded = loadBinding({
      bindings: 'exitwatch.node',
      module_root: root,
      try: [
        ['module_root', 'build', 'Release', 'bindings'],
        ['module_root', 'build', 'Debug', 'bindings'],
        [...prebuilds, 'exitwatch.node'],
      ],
    }) as Addon;
  } catch (cause) {
    throw new ExitwatchError(
      'ERR_EXITWATCH_NO_ADDON',
      `no native addon for ${process.platform}-${process.arch} could be loaded: ` +
        (cause instanceof Error ? cause.message : String(cause)),
      { cause },
    );
  }
  return loaded;
}

/** Sentences for `Failure` of native/linux/system_error.h, in its order. */
const FAILURES: readonly (readonly [ExitwatchErrorCode, string])[] = [
  ['ERR_EXITWATCH_SYSTEM', 'a system call failed'],
  ['ERR_EXITWATCH_SYSTEM', 'a system call failed'],
  [
    'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE',
    "the proc connector exists in the host's network namespace only, and this process is in " +
      "another one; run it in the host's (containers: host networking)",
  ],
  [
    'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE',
    "the proc connector serves the host's pid namespace only, and this process is in another one; " +
      "run it in the host's (containers: host pids)",
  ],
  [
    'ERR_EXITWATCH_FOREIGN_USER_NAMESPACE',
    "the proc connector serves the host's user namespace only, and this process is in another one " +
      '(rootless containers are)',
  ],
  [
    'ERR_EXITWATCH_NOT_PERMITTED',
    'before Linux 6.6 the proc connector takes root or CAP_NET_ADMIN in the host',
  ],
  [
    'ERR_EXITWATCH_NO_CONNECTOR',
    'this kernel was built without the proc connector (CONFIG_CONNECTOR, CONFIG_PROC_EVENTS)',
  ],
  ['ERR_EXITWATCH_NO_PIDFD', 'pidfd_open(2), of Linux 5.3, is missing or forbidden (seccomp)'],
  [
    'ERR_EXITWATCH_NO_PROC',
    "/proc is not mounted, hides this process (hidepid), or is another pid namespace's",
  ],
  [
    'ERR_EXITWATCH_SILENT',
    'the kernel took the subscription but sends no events: it has no process events ' +
      '(CONFIG_PROC_EVENTS), or somebody has silenced them for the whole host',
  ],
];

/** The error for a failure that the addon told as `{ failure, errno, syscall }`. */
export function failureError(failure: number, errno: number, syscall: string): ExitwatchError {
  const [code, sentence] = FAILURES[failure] ?? ['ERR_EXITWATCH_SYSTEM', 'a system call failed'];
  const message =
    code === 'ERR_EXITWATCH_SYSTEM' ? `${syscall}: ${getSystemErrorName(-errno)}` : sentence;
  return new ExitwatchError(code, message, { errno, syscall });
}

/** Turns what the addon threw into the error that users see; anything else stays as it is. */
export function translateFailure(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !('failure' in thrown)) return thrown;
  const { failure, errno, syscall } = thrown as Error & Record<string, unknown>;
  return failureError(Number(failure), Number(errno), String(syscall));
}
