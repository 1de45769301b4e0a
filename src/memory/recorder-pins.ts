import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { reasonOf } from '../common/errors.js';
import type { Downgrade } from '../events/exit-event.js';
import { bpfDowngrade, failureDowngrade } from '../sources/downgrade.js';
import type { NativeRecorder, NativeRecorderAbout } from '../native/addon.js';
import { addonRefusal, loadAddon } from '../native/load-addon.js';
import { PACKAGE_VERSION } from '../native/package-version.js';
import { judgeTrial } from '../trace/trial.js';

import { checkFileSystem } from './bpf-file-system.js';
import { NoRecorder, refuseNoRecorder } from './no-recorder.js';

/** Where recorders are pinned: a folder for each state directory. */
export const DEFAULT_PINS = '/sys/fs/bpf/exitwatch';

/** How long a recorder goes on without a reader. */
export const LEASE_MS = 7 * 24 * 60 * 60 * 1000;

/** What a new recorder has room for. */
export interface RecorderSize {
  /** Watched processes. */
  slots: number;
  /** For the exits of all processes, 160 bytes each; 0: watched ones only. */
  ringBytes: number;
  /** For other signals, 224 bytes each. */
  signalBytes: number;
}

export const DEFAULT_SIZE: RecorderSize = {
  slots: 16_384,
  ringBytes: 4 * 1024 * 1024,
  signalBytes: 1024 * 1024,
};

/** The folder in which the recorder of a state directory is pinned. */
export function pinsOf(root: string, stateDir: string): string {
  return join(root, createHash('sha256').update(stateDir).digest('hex').slice(0, 16));
}

/** What is needed to open or create a recorder. */
export interface RecorderPlace {
  /** The folder of all recorders, in a BPF file system. */
  root: string;
  /** An absolute path: the recorder is this folder's. */
  stateDir: string;
  size: RecorderSize;
  /** The user that may use the recorder, if it is not this process's. */
  owner?: number;
}

/** A recorder, and those of older versions that it has replaced and that still hold exits. */
export interface OpenRecorders {
  current: NativeRecorder;
  previous: { recorder: NativeRecorder; folder: string }[];
  /** Why it does not record all that was asked for; `null` if it does. */
  lacks: Downgrade | null;
}

/**
 * Opens the recorder of a state directory, or creates one. The caller owns the state directory, so
 * nobody else opens, creates or replaces its recorder meanwhile.
 *
 * @throws NoRecorder
 */
export function openRecorders(place: RecorderPlace): OpenRecorders {
  checkFileSystem(place.root);
  const folder = pinsOf(place.root, place.stateDir);
  const recorder = new (loadAddon().Recorder)();
  const errno = recorder.open(folder);
  const about = recorder.about();
  if (errno === 0 && isOurs(about, place)) {
    recorder.setLease(LEASE_MS);
    if (place.size.ringBytes === 0 || about?.ringBytes !== 0) {
      return { current: recorder, previous: openPrevious(folder), lacks: null };
    }
    try {
      const larger = createRecorder(place, true);
      recorder.close();
      return { current: larger, previous: openPrevious(folder), lacks: null };
    } catch (error) {
      refuseNoRecorder(error);
      return { current: recorder, previous: openPrevious(folder), lacks: WATCHED_ONLY };
    }
  }
  recorder.close();
  if (about !== undefined && isNewer(about)) {
    throw new NoRecorder({
      code: 'newer-recorder',
      detail: `exitwatch ${about.version} pinned a recorder at ${folder}, which this version cannot read`,
      remedy: `use that version, or remove the recorder: exitwatch memory --remove --state-dir ${JSON.stringify(place.stateDir)}`,
    });
  }
  const isReadable = errno === 0 && about?.stateDir === place.stateDir;
  const current = createRecorder(place, isReadable);
  return { current, previous: openPrevious(folder), lacks: null };
}

const WATCHED_ONLY: Downgrade = {
  code: 'watched-only',
  detail: 'the recorder was created for watched processes, and records no others',
  remedy: 'exitwatch memory --create --scope all --owner USER, run by root, creates one for all',
};

/**
 * Creates a recorder and pins it. What has been pinned there before is kept beside it if `keepsOld`,
 * and stops recording.
 *
 * @throws NoRecorder
 */
export function createRecorder(
  { root, stateDir, size, owner }: RecorderPlace,
  keepsOld = false,
): NativeRecorder {
  const recorder = new (loadAddon().Recorder)();
  const refusal = recorder.create({
    ...size,
    owner: owner ?? process.geteuid?.() ?? 0,
    version: PACKAGE_VERSION,
    stateDir,
  });
  const downgrade = bpfDowngrade(refusal);
  if (downgrade !== null) throw new NoRecorder(downgrade);
  try {
    recorder.setLease(LEASE_MS);
    if (judgeTrial(recorder.trial()) === null) recorder.trust();
    publish(recorder, { root, folder: pinsOf(root, stateDir), owner, keepsOld });
  } catch (error) {
    recorder.close();
    throw new NoRecorder({
      code: 'no-bpffs',
      detail: `${JSON.stringify(root)} cannot be used: ${reasonOf(error)}`,
      remedy: 'exitwatch memory --create --owner USER, run by root, makes a recorder for a user',
    });
  }
  return recorder;
}

/** Why there can be no recorder here; `null` if there can be one. Pins nothing. */
export function probeRecorder(): Downgrade | null {
  const noAddon = addonRefusal();
  if (noAddon !== null) return failureDowngrade(noAddon);
  try {
    checkFileSystem(DEFAULT_PINS);
  } catch (error) {
    return refuseNoRecorder(error);
  }
  const recorder = new (loadAddon().Recorder)();
  try {
    const size = { slots: 1, ringBytes: 0, signalBytes: 4096 };
    const version = PACKAGE_VERSION;
    const refusal = recorder.create({ ...size, owner: 0, version, stateDir: '' });
    const downgrade = bpfDowngrade(refusal);
    if (downgrade !== null) return downgrade;
    recorder.setLease(LEASE_MS);
    return judgeTrial(recorder.trial());
  } finally {
    recorder.close();
  }
}

function openPrevious(folder: string): OpenRecorders['previous'] {
  return foldersOfPrevious(folder).flatMap((each) => {
    const recorder = new (loadAddon().Recorder)();
    if (recorder.open(each) === 0) return [{ recorder, folder: each }];
    recorder.close();
    return [];
  });
}

/** The oldest first. */
function foldersOfPrevious(folder: string): string[] {
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

/** Removes the pins: the programs end with the last process that has them open. */
export function removePins(folder: string): void {
  for (const entry of readdirSync(folder)) unlinkSync(join(folder, entry));
  rmdirSync(folder);
}

/** All at once, by a rename. */
function publish(
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
  recorder.pin(fresh);
  if (owner !== undefined) {
    for (const entry of readdirSync(fresh)) {
      chmodSync(join(fresh, entry), 0o600);
      chownSync(join(fresh, entry), owner, 0);
    }
    chownSync(fresh, owner, 0);
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

function isOurs(about: NativeRecorderAbout | undefined, { stateDir }: RecorderPlace): boolean {
  return about?.stateDir === stateDir && about.version === PACKAGE_VERSION;
}

function isNewer(about: NativeRecorderAbout): boolean {
  const numbers = (version: string) => version.split('.').map((part) => Number.parseInt(part, 10));
  const [theirs, own] = [numbers(about.version), numbers(PACKAGE_VERSION)];
  for (let i = 0; i < 3; i++) {
    const difference = (theirs[i] ?? 0) - (own[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}
