import { createHash, randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import type { NativeRecorder } from '../native/addon.js';

/**
 * The folder in which the recorder of a state directory is pinned. It is named after the directory
 * itself: the same path may be another directory in another mount namespace, and the same directory
 * may have several paths.
 */
export function pinsOf(root: string, stateDir: string): string {
  const { dev, ino } = statSync(stateDir, { bigint: true });
  return join(root, createHash('sha256').update(`${dev}:${ino}`).digest('hex').slice(0, 16));
}

/** Where recorders are pinned that the one in this folder has replaced; the oldest first. */
export function foldersOfPrevious(folder: string): string[] {
  const start = `${basename(folder)}-previous-`;
  let entries;
  try {
    entries = readdirSync(dirname(folder));
  } catch {
    return []; // only root sees the recorders of others
  }
  return entries
    .filter((entry) => entry.startsWith(start))
    .sort()
    .map((entry) => join(dirname(folder), entry));
}

/**
 * Removes the pins: the programs end with the last process that has them open. Leaves a recorder alone
 * that root has pinned for us, because we could not create another one. Returns whether it is gone.
 */
export function removePins(folder: string): boolean {
  try {
    accessSync(dirname(folder), constants.W_OK);
    for (const entry of readdirSync(folder)) unlinkSync(join(folder, entry));
    rmdirSync(folder);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return true;
    if (code === 'EACCES' || code === 'EPERM') return false;
    throw error;
  }
}

/** Pins a recorder all at once, by a rename. `keepsOld`: what was there is kept beside it. */
export function publish(
  recorder: NativeRecorder,
  place: { root: string; folder: string; owner: number | undefined; keepsOld: boolean },
): void {
  const { root, folder, owner, keepsOld } = place;
  mkdirSync(root, { recursive: true, mode: 0o711 });
  removeLeftovers(root);
  const suffix = randomBytes(4).toString('hex');
  // The file system permits no dots in names.
  const fresh = join(root, `new-${process.pid}-${suffix}`);
  mkdirSync(fresh, { mode: 0o700 });
  try {
    recorder.pin(fresh);
    if (owner !== undefined) giveTo(owner, fresh);
  } catch (error) {
    removePins(fresh);
    throw error;
  }
  const old = keepsOld
    ? `${folder}-previous-${Date.now()}`
    : join(root, `old-${process.pid}-${suffix}`);
  const hasOld = renameIfThere(folder, old);
  renameSync(fresh, folder);
  if (!hasOld) return;
  if (keepsOld) stopRecording(old);
  else removePins(old);
}

function giveTo(owner: number, folder: string): void {
  for (const entry of readdirSync(folder)) {
    chmodSync(join(folder, entry), 0o600);
    chownSync(join(folder, entry), owner, 0);
  }
  chownSync(folder, owner, 0);
}

function renameIfThere(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return false;
  }
}

/** Detaches the programs; what they have recorded stays. */
function stopRecording(folder: string): void {
  for (const entry of readdirSync(folder)) {
    if (entry.endsWith('_link')) unlinkSync(join(folder, entry));
  }
}

/** What a process has left that was killed while it published a recorder. */
function removeLeftovers(root: string): void {
  for (const entry of readdirSync(root)) {
    const [, pid] = /^(?:new|old)-(\d+)-[0-9a-f]{8}$/.exec(entry) ?? [];
    if (pid === undefined || isThere(Number(pid))) continue;
    try {
      removePins(join(root, entry));
    } catch {
      // Another process removes it, or it belongs to another user.
    }
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
