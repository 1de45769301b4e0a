import { existsSync, lstatSync } from 'node:fs';
import { unlink } from 'node:fs/promises';

import { ExitwatchError, type ExitwatchErrorCode } from '../common/errors.js';
import { isWritableByOthers, trustedOwners } from '../common/file-trust.js';
import { readSmallFile, replaceFile, type SmallFile } from '../common/small-file.js';
import { absenceError } from '../identity/not-a-process.js';
import { processTable } from '../identity/platform-table.js';
import {
  checkAgainstPidMax,
  checkIdentity,
  checkPid,
  identifyOrNone,
  isSameProcess,
  lookUp,
  startOf,
  type ProcessIdentity,
} from '../identity/process-identity.js';

import { isAlive, type Liveness } from './liveness.js';

/**
 * The contents of a pidfile.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export type Pidfile = {
  path: string;
  pid: number;
  /**
   * Which process had that pid when the file was written; `null` if another program wrote it. Then
   * the file is only a number, and the pid may have been reused.
   */
  identity: ProcessIdentity | null;
};

/** Room for the digits of a pid and white space. */
const MOST_BYTES = 64;
const MOST_IDENTITY_BYTES = 1024;

/** The file next to a pidfile that holds the identity. */
const identityPath = (path: string) => `${path}.id`;

/**
 * Reads a pidfile: digits, with optional white space around them. It must be a regular file that
 * only its owner can write. If the owner is neither root nor the current user, it must name a
 * process of its owner; otherwise any user could make you signal other users' processes.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NO_PIDFILE`, `…_INVALID_PIDFILE` (with
 * what it holds), `…_UNTRUSTED_PIDFILE`, `…_NOT_PERMITTED`, `…_SYSTEM`.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export async function readPidfile(path: string): Promise<Pidfile> {
  const file = await readTrusted(path, MOST_BYTES);
  const pid = parsePid(path, file);
  const identity = await readIdentity(path, pid, file.uid);
  // If the identity's process is dead, no other process can be signalled in its place.
  if (identity === null || isAlive(identity) !== 'dead') checkOwner(path, file, pid);
  return { path, pid, identity };
}

/**
 * Writes a pidfile for this process or another one: only the digits, with mode 0600, replacing any
 * existing file. The identity goes into `PATH.id`, so that a reused pid is detected even years
 * later. Durable when it resolves; a reader sees either the old file or the new one.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NO_SUCH_PROCESS`, `…_THREAD`,
 * `…_KERNEL_THREAD`, `…_INVALID_PID`, `…_INVALID_IDENTITY`, `…_NOT_PERMITTED`, `…_SYSTEM`.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export async function writePidfile(
  path: string,
  target: number | ProcessIdentity = process.pid,
): Promise<Pidfile> {
  if (typeof target === 'object') checkIdentity(target);
  const identity = typeof target === 'object' ? target : identifyOrNone(target);
  if (identity === null) throw absenceError(Number(target), 'none');
  try {
    // In this order, because an identity next to a different pid is ignored.
    await replaceFile(identityPath(path), `${JSON.stringify(identity)}\n`);
    await replaceFile(path, String(identity.pid));
  } catch (error) {
    throw fileError(path, error, 'written');
  }
  return { path, pid: identity.pid, identity };
}

/**
 * Removes a pidfile and its `PATH.id`, unless it names a process other than `identity` by now.
 * Resolves with `true` if the file is gone, even if it was missing before. Resolves with `false` if
 * it stays, also because it is unclear which process it names: for example, if it holds only the
 * pid of `identity`, and another process has that pid by now.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NOT_PERMITTED`, `…_SYSTEM`.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export async function removePidfile(
  path: string,
  identity?: ProcessIdentity | number,
): Promise<boolean> {
  if (identity !== undefined && (await namesAnother(path, identity))) return false;
  for (const each of [path, identityPath(path)]) {
    try {
      await unlink(each);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        throw fileError(path, error, 'removed');
    }
  }
  return true;
}

/**
 * The state of a pidfile's process, as found by {@link removeStalePidfile}; `'missing'`: no file.
 */
export type PidfileState = Liveness | 'missing';

/**
 * Removes a pidfile if its process is dead. The file stays if it cannot be read or trusted, if the
 * process cannot be checked, or if the pid is a thread or a kernel thread.
 *
 * Rejects like {@link readPidfile} and {@link removePidfile}, except for a missing file.
 *
 * @see [Stop a process safely](../../docs/stop-safely.md)
 */
export async function removeStalePidfile(path: string): Promise<PidfileState> {
  let pidfile;
  try {
    pidfile = await readPidfile(path);
  } catch (error) {
    const isMissing = error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_NO_PIDFILE';
    if (isMissing) return 'missing';
    throw error;
  }
  const state = isAlive(pidfile.identity ?? pidfile.pid);
  if (state === 'dead') await removePidfile(path, pidfile.identity ?? pidfile.pid);
  return state;
}

/**
 * Whether a process left its own pidfile behind; `null` if it has none, or if {@link writePidfile}
 * wrote it. @internal
 */
export function isLeft(path: string | null): boolean | null {
  return path === null || existsSync(identityPath(path)) ? null : existsSync(path);
}

/** Files and processes get their times from clocks that differ by up to two ticks of USER_HZ. */
const SLACK_MS = 50;

/**
 * Whether a process started after the file was written, which means that the file names another
 * one, or that the clock was set in between. Also `true` if this is unknown. @internal
 */
export function mayHaveStartedAfter(identity: ProcessIdentity, path: string): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  const startedAt = startOf(identity);
  if (status === undefined || startedAt === null) return true;
  return startedAt.getTime() > status.mtimeMs + SLACK_MS;
}

async function readTrusted(path: string, most: number): Promise<SmallFile> {
  const file = await readSmallFile(path, most).catch((error: unknown) => {
    throw fileError(path, error, 'read');
  });
  if (isWritableByOthers(file)) throw untrusted(path, 'users other than its owner can write it');
  return file;
}

function parsePid(path: string, { bytes, isCut }: SmallFile): number {
  const text = bytes.toString('latin1');
  const digits = /^\s*(\d{1,10})\s*$/.exec(text)?.[1];
  const pid = Number(digits);
  try {
    if (digits === undefined || isCut) throw new Error('no pid');
    checkPid(pid);
    checkAgainstPidMax(pid);
    return pid;
  } catch {
    const quoted = JSON.stringify(text) + (isCut ? '…' : '');
    throw new ExitwatchError(
      'ERR_EXITWATCH_INVALID_PIDFILE',
      `${quote(path)} contains ${quoted}, which is not a pid`,
    );
  }
}

function checkOwner(path: string, { uid: owner }: SmallFile, pid: number): void {
  if (trustedOwners().includes(owner)) return;
  const lookup = processTable().lookNow(pid);
  if (lookup !== null && lookup !== 'unknown' && lookup.uid === owner) return;
  throw untrusted(path, `it belongs to user ${owner}, but does not name a process of that user`);
}

async function readIdentity(
  path: string,
  pid: number,
  pidfileOwner: number,
): Promise<ProcessIdentity | null> {
  try {
    const { bytes, uid } = await readTrusted(identityPath(path), MOST_IDENTITY_BYTES);
    // A user who can only create files next to the pidfile must not decide which process it names.
    if (!trustedOwners(pidfileOwner).includes(uid)) return null;
    const identity: unknown = JSON.parse(bytes.toString('utf8'));
    checkIdentity(identity);
    return identity.pid === pid ? identity : null;
  } catch {
    return null; // it is missing, or does not count
  }
}

async function namesAnother(path: string, who: ProcessIdentity | number): Promise<boolean> {
  try {
    const named = await readPidfile(path);
    if (typeof who === 'number') return named.pid !== who;
    if (named.pid !== who.pid) return true;
    return named.identity === null ? isTakenOver(who) : !isSameProcess(named.identity, who);
  } catch (error) {
    if (!(error instanceof ExitwatchError)) throw error;
    // An invalid pidfile is not ours to remove. If it is missing, `PATH.id` may still be removed.
    return error.code !== 'ERR_EXITWATCH_NO_PIDFILE';
  }
}

/** Whether the pid now belongs to something else than this process. */
function isTakenOver(identity: ProcessIdentity): boolean {
  const found = lookUp(identity.pid);
  return typeof found === 'object' ? !isSameProcess(found, identity) : found !== 'none';
}

function fileError(path: string, error: unknown, done: string): ExitwatchError {
  const { code = '' } = error as NodeJS.ErrnoException;
  const [name, detail] = FILE_ERRORS[code] ?? [
    'ERR_EXITWATCH_SYSTEM',
    `cannot be ${done}: ${code}`,
  ];
  return new ExitwatchError(name, `${quote(path)} ${detail}`, { cause: error });
}

const FILE_ERRORS: Partial<Record<string, readonly [ExitwatchErrorCode, string]>> = {
  ENOENT: ['ERR_EXITWATCH_NO_PIDFILE', 'does not exist'],
  ELOOP: ['ERR_EXITWATCH_UNTRUSTED_PIDFILE', 'is a symbolic link'],
  EINVAL: ['ERR_EXITWATCH_INVALID_PIDFILE', 'is not a regular file'],
  EISDIR: ['ERR_EXITWATCH_INVALID_PIDFILE', 'is not a regular file'],
  ENXIO: ['ERR_EXITWATCH_INVALID_PIDFILE', 'is not a regular file'],
  EACCES: ['ERR_EXITWATCH_NOT_PERMITTED', 'is not accessible to this user'],
  EPERM: ['ERR_EXITWATCH_NOT_PERMITTED', 'is not accessible to this user'],
};

function untrusted(path: string, why: string): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_UNTRUSTED_PIDFILE',
    `cannot trust ${quote(path)}: ${why}`,
  );
}

function quote(path: string): string {
  return JSON.stringify(path);
}
