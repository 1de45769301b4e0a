import { statSync } from 'node:fs';

import { reasonOf } from '../common/errors.js';
import { distrustOf } from '../common/file-trust.js';
import type { Downgrade } from '../events/exit-event.js';
import { bpfDowngrade, failureDowngrade } from '../sources/downgrade.js';
import type { NativeRecorder, NativeRecorderAbout } from '../native/addon.js';
import { addonRefusal, loadAddon } from '../native/load-addon.js';
import { PACKAGE_VERSION } from '../native/package-version.js';
import { judgeTrial } from '../trace/trial.js';

import { checkFileSystem } from './bpf-file-system.js';
import { NoRecorder, refuseNoRecorder } from './no-recorder.js';
import { foldersOfPrevious, pinsOf, publish, removePins } from './pin-folder.js';

/** Where recorders are pinned: a folder for each state directory. */
export const DEFAULT_PINS = '/sys/fs/bpf/exitwatch';

/** How long a recorder goes on without a reader. */
export const LEASE_MS = 7 * 24 * 60 * 60 * 1000;

/** What a new recorder has room for. */
export interface RecorderSize {
  /** Watched processes. */
  slots: number;
  /** For the exits of all processes, about 184 bytes each; 0: watched ones only. */
  ringBytes: number;
  /** For other signals, about 296 bytes each. */
  signalBytes: number;
}

export const DEFAULT_SIZE: RecorderSize = {
  slots: 16_384,
  ringBytes: 4 * 1024 * 1024,
  signalBytes: 1024 * 1024,
};

/** What is needed to open or create a recorder. */
export interface RecorderPlace {
  /** The folder of all recorders, in a BPF file system. */
  root: string;
  /** The path of an existing directory: the recorder is that directory's. */
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
  checkOwner(folder);
  const recorder = new (loadAddon().Recorder)();
  const isReadable = recorder.open(folder) === 0;
  const about = recorder.about();
  if (isReadable && about?.version === PACKAGE_VERSION && about.isRecording) {
    recorder.setLease(LEASE_MS);
    return withRoom(recorder, about, place);
  }
  try {
    if (about !== undefined && isNewer(about)) throw new NoRecorder(newerRecorder(about, place));
    const current = createRecorder(place, isReadable ? recorder : undefined);
    return { current, previous: openPrevious(folder), lacks: null };
  } finally {
    recorder.close();
  }
}

/** Replaces a recorder that has not the room that is wanted, if that is permitted. */
function withRoom(
  recorder: NativeRecorder,
  about: NativeRecorderAbout,
  place: RecorderPlace,
): OpenRecorders {
  const folder = pinsOf(place.root, place.stateDir);
  const { slots, ringBytes, signalBytes } = place.size;
  const hasRing = ringBytes === 0 ? about.ringBytes === 0 : about.ringBytes >= ringBytes;
  if (hasRing && about.slots >= slots && about.signalBytes >= signalBytes) {
    return { current: recorder, previous: openPrevious(folder), lacks: null };
  }
  try {
    const other = createRecorder(place, recorder);
    recorder.close();
    return { current: other, previous: openPrevious(folder), lacks: null };
  } catch (error) {
    refuseNoRecorder(error);
    const lacks = ringBytes > 0 && about.ringBytes === 0 ? WATCHED_ONLY : null;
    return { current: recorder, previous: openPrevious(folder), lacks };
  }
}

const WATCHED_ONLY: Downgrade = {
  code: 'watched-only',
  detail: 'the recorder was created for watched processes, and records no others',
  remedy: 'exitwatch memory --create --scope all --owner USER, run by root, creates one for all',
};

function newerRecorder(
  { version }: NativeRecorderAbout,
  { root, stateDir }: RecorderPlace,
): Downgrade {
  const at = root === DEFAULT_PINS ? '' : ` --pin-dir ${JSON.stringify(root)}`;
  const name = version.replace(/[^\w.+-]/g, '?');
  return {
    code: 'newer-recorder',
    detail: `exitwatch ${name} pinned the recorder of this directory, which this version cannot read`,
    remedy: `use that version, or exitwatch memory --remove --state-dir ${JSON.stringify(stateDir)}${at}`,
  };
}

/** @throws NoRecorder if others than we and root could have changed what is pinned there */
function checkOwner(folder: string): void {
  let distrust;
  try {
    distrust = distrustOf(statSync(folder));
  } catch {
    return; // there is none, or it cannot be opened either
  }
  if (distrust === null) return;
  throw new NoRecorder({
    code: 'untrusted-recorder',
    detail: `the recorder at ${folder} ${distrust}`,
    remedy: 'run as that user, or use another stateDir',
  });
}

/**
 * Creates a recorder and pins it. `old`: the one that was pinned there before, which is kept beside it
 * and stops recording when the new one records all that it has recorded.
 *
 * @throws NoRecorder
 */
export function createRecorder(
  { root, stateDir, size, owner }: RecorderPlace,
  old?: NativeRecorder,
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
    if (old !== undefined) recorder.inherit(old);
    const folder = pinsOf(root, stateDir);
    publish(recorder, { root, folder, owner, keepsOld: old !== undefined });
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
    const size = { slots: 1, ringBytes: 0, signalBytes: 65_536 };
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
    // A removal that was interrupted left it.
    if (recorder.about() === undefined) removePins(each);
    recorder.close();
    return [];
  });
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
