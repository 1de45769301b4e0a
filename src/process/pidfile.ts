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

/** What a pidfile says. */
export type Pidfile = {
  path: string;
  pid: number;
  /**
   * Which process had that pid when the file was written; `null` where another program wrote it. Such a
   * file says no more than a number, which may be another's by now.
   */
  identity: ProcessIdentity | null;
};

/** Digits of a pid, with room for what surrounds them. */
const MOST_BYTES = 64;
const MOST_IDENTITY_BYTES = 1024;

/** What is beside a pidfile of ours. */
const identityPath = (path: string) => `${path}.id`;

/**
 * Reads a pidfile: digits, whatever white space is around them. It must be a regular file that nobody
 * but its owner can write. Where that is neither root nor the user we are, it must name a process of its
 * owner: otherwise anybody could have us signal somebody else's.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NO_PIDFILE`, `…_INVALID_PIDFILE` (with what it
 * holds), `…_UNTRUSTED_PIDFILE`, `…_NOT_PERMITTED`, `…_SYSTEM`.
 */
export async function readPidfile(path: string): Promise<Pidfile> {
  const file = await readTrusted(path, MOST_BYTES);
  const pid = parsePid(path, file);
  const identity = await readIdentity(path, pid, file.uid);
  // One that has ended is nobody who could be signalled in another's place.
  if (identity === null || isAlive(identity) !== 'dead') checkOwner(path, file, pid);
  return { path, pid, identity };
}

/**
 * Writes a pidfile, for this process or another: the digits and nothing else, mode 0600, in the place of
 * whatever was there; and beside it (`PATH.id`) which process that is, so that a pid that was reused is
 * noticed also years later. Durable when it resolves; a reader sees the old file or the new one.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NO_SUCH_PROCESS`, `…_THREAD`, `…_KERNEL_THREAD`,
 * `…_INVALID_PID`, `…_INVALID_IDENTITY`, `…_NOT_PERMITTED`, `…_SYSTEM`.
 */
export async function writePidfile(
  path: string,
  target: number | ProcessIdentity = process.pid,
): Promise<Pidfile> {
  if (typeof target === 'object') checkIdentity(target);
  const identity = typeof target === 'object' ? target : identifyOrNone(target);
  if (identity === null) throw absenceError(Number(target), 'none');
  try {
    // In this order: an identity beside another's pid counts for nothing.
    await replaceFile(identityPath(path), `${JSON.stringify(identity)}\n`);
    await replaceFile(path, String(identity.pid));
  } catch (error) {
    throw fileError(path, error, 'written');
  }
  return { path, pid: identity.pid, identity };
}

/**
 * Removes a pidfile and what is beside it, unless it names another process than `identity`, or another
 * pid, by now. A file that is missing is fine. Resolves with whether there is none any more: `false` also
 * if it cannot be told whom it names, as of a file with no more than a pid, which is that of `identity`
 * and by now also that of something else that lives.
 *
 * Rejects with an {@link ExitwatchError}: `ERR_EXITWATCH_NOT_PERMITTED`, `…_SYSTEM`.
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

/** What {@link removeStalePidfile} found: the process lives, or not, or nobody knows; or no file. */
export type PidfileState = Liveness | 'missing';

/**
 * Removes a pidfile if the process that it names is dead. What cannot be read or trusted, or whose
 * process cannot be looked at, stays; so does one that holds the id of a thread, or of a kernel thread.
 *
 * Rejects as {@link readPidfile} and {@link removePidfile} do, but for a missing file.
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
 * Whether a process has left the pidfile that it had made itself; `null`: it has none, or somebody else made
 * it. @internal
 */
export function isLeft(path: string | null): boolean | null {
  return path === null || existsSync(identityPath(path)) ? null : existsSync(path);
}

/** Files and processes are stamped by clocks that are up to two ticks of USER_HZ apart. */
const SLACK_MS = 50;

/**
 * Whether a process has started after that file was written, so that it is not the one that is meant by it;
 * or the clock was set in between. `true` also where that cannot be told. @internal
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
  if (isWritableByOthers(file)) throw untrusted(path, 'others than its owner can write it');
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
      `${quote(path)} holds no pid, but ${quoted}`,
    );
  }
}

function checkOwner(path: string, { uid: owner }: SmallFile, pid: number): void {
  if (trustedOwners().includes(owner)) return;
  const lookup = processTable().lookNow(pid);
  if (lookup !== null && lookup !== 'unknown' && lookup.uid === owner) return;
  throw untrusted(path, `it is user ${owner}'s, and names no process of that user`);
}

async function readIdentity(
  path: string,
  pid: number,
  pidfileOwner: number,
): Promise<ProcessIdentity | null> {
  try {
    const { bytes, uid } = await readTrusted(identityPath(path), MOST_IDENTITY_BYTES);
    // Whoever may make files beside the pidfile has no say in whom it means.
    if (!trustedOwners(pidfileOwner).includes(uid)) return null;
    const identity: unknown = JSON.parse(bytes.toString('utf8'));
    checkIdentity(identity);
    return identity.pid === pid ? identity : null;
  } catch {
    return null; // there is none, or none that counts
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
    // What is no pidfile any more is nobody's of ours to remove; where there is none, only its id is.
    return error.code !== 'ERR_EXITWATCH_NO_PIDFILE';
  }
}

/** Something else than this process has its pid. */
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
  ENOENT: ['ERR_EXITWATCH_NO_PIDFILE', 'is missing'],
  ELOOP: ['ERR_EXITWATCH_UNTRUSTED_PIDFILE', 'is a symbolic link'],
  EINVAL: ['ERR_EXITWATCH_INVALID_PIDFILE', 'is no regular file'],
  EISDIR: ['ERR_EXITWATCH_INVALID_PIDFILE', 'is no regular file'],
  ENXIO: ['ERR_EXITWATCH_INVALID_PIDFILE', 'is no regular file'],
  EACCES: ['ERR_EXITWATCH_NOT_PERMITTED', 'is not permitted to this user'],
  EPERM: ['ERR_EXITWATCH_NOT_PERMITTED', 'is not permitted to this user'],
};

function untrusted(path: string, why: string): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_UNTRUSTED_PIDFILE',
    `${quote(path)} is not trusted: ${why}`,
  );
}

function quote(path: string): string {
  return JSON.stringify(path);
}
