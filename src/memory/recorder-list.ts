import {
  chownSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { ExitwatchError, reasonOf } from '../common/errors.js';
import type { NativeProgram } from '../native/addon.js';
import { loadAddon } from '../native/load-addon.js';

import { checkFileSystem } from './bpf-file-system.js';
import { foldersOfPrevious, pinsOf, removePins } from './pin-folder.js';
import { createRecorder, type RecorderPlace } from './recorder-pins.js';

/** A pinned recorder. */
export interface RecorderReport {
  /** Where it is pinned. */
  folder: string;
  stateDir: string;
  /** The version of exitwatch that created it. */
  version: string;
  /** The user that it belongs to. */
  owner: number;
  /** `null`: this version cannot read more of it. */
  usage: RecorderUsage | null;
}

/** What a recorder holds, and what it costs. */
export interface RecorderUsage {
  /** Watched processes, and how many there can be. */
  watched: number;
  slots: number;
  /** Of the exits of all processes, in bytes; 0 if only watched processes are recorded. */
  ringBytes: number;
  ringUsed: number;
  /** Of other signals, in bytes. */
  signalBytes: number;
  signalUsed: number;
  /** Records that did not fit. */
  lostExits: number;
  lostSignals: number;
  /** For how long it goes on without a reader, in ms; 0 if it has stopped. */
  leaseMs: number;
  programs: NativeProgram[];
}

const RECORDER = /^[0-9a-f]{16}(?:-previous-\d+)?$/;

/** All recorders that are pinned in a folder, as far as this user can read them. */
export function listRecorders(root: string): RecorderReport[] {
  let entries;
  try {
    entries = readdirSync(root);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    const detail = `${JSON.stringify(root)} cannot be read: ${reasonOf(error)}`;
    throw new ExitwatchError('ERR_EXITWATCH_SYSTEM', detail, { cause: error });
  }
  return entries
    .filter((entry) => RECORDER.test(entry))
    .flatMap((entry) => look(join(root, entry)));
}

function look(folder: string): RecorderReport[] {
  const recorder = new (loadAddon().Recorder)();
  try {
    const errno = recorder.open(folder);
    const about = recorder.about();
    if (about === undefined) return [];
    const { stateDir, version, owner, slots, ringBytes, signalBytes } = about;
    if (errno !== 0) return [{ folder, stateDir, version, owner, usage: null }];
    const { ring, signals } = recorder.used();
    const losses = recorder.losses();
    const usage: RecorderUsage = {
      watched: recorder.watched(),
      slots,
      ringBytes,
      ringUsed: ring,
      signalBytes,
      signalUsed: signals,
      lostExits: losses.exits.count,
      lostSignals: losses.signals.count,
      leaseMs: Math.max(0, Math.round(recorder.lease())),
      programs: recorder.programs(),
    };
    return [{ folder, stateDir, version, owner, usage }];
  } finally {
    recorder.close();
  }
}

/**
 * Creates a recorder for a state directory, which is created as well if it is missing. Returns the folder
 * of its pins.
 *
 * @throws NoRecorder
 * @throws ExitwatchError `ERR_EXITWATCH_IN_USE`: it has a recorder, or a monitor uses it
 */
export function addRecorder(place: RecorderPlace): string {
  const { root, stateDir, owner } = place;
  checkFileSystem(root);
  makeStateDir(stateDir, owner);
  return whileUnused(stateDir, () => {
    const folder = pinsOf(root, stateDir);
    if (existsSync(folder)) {
      const remedy = `exitwatch memory --remove --state-dir ${JSON.stringify(stateDir)}`;
      const detail = `${JSON.stringify(stateDir)} has a recorder already`;
      throw new ExitwatchError('ERR_EXITWATCH_IN_USE', detail, { remedy });
    }
    createRecorder(place).close();
    return folder;
  });
}

function makeStateDir(path: string, owner: number | undefined): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  mkdirSync(path, { mode: 0o700 });
  if (owner !== undefined) chownSync(path, owner, process.getgid?.() ?? 0);
}

/**
 * Removes the recorder of a state directory, and those that it has replaced. The directory may be gone.
 * Returns the folders of their pins.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_IN_USE`: a monitor uses it; `ERR_EXITWATCH_NOT_PERMITTED`
 */
export function removeRecorder(root: string, stateDir: string): string[] {
  if (existsSync(stateDir)) {
    return whileUnused(stateDir, () => removeAll(recordersOf(root, stateDir)));
  }
  const gone = listRecorders(root).filter((each) => each.stateDir === stateDir);
  return removeAll(gone.map(({ folder }) => folder));
}

/** Where the recorder of a state directory is pinned, and those that it has replaced. */
export function recordersOf(root: string, stateDir: string): string[] {
  const folder = pinsOf(root, stateDir);
  return [...foldersOfPrevious(folder), ...(existsSync(folder) ? [folder] : [])];
}

function removeAll(folders: string[]): string[] {
  for (const folder of folders) {
    if (removePins(folder)) continue;
    const detail = `this user may not remove ${JSON.stringify(folder)}`;
    throw new ExitwatchError('ERR_EXITWATCH_NOT_PERMITTED', detail, { remedy: 'run as root' });
  }
  return folders;
}

/** Does something while no monitor owns the state directory. */
function whileUnused<T>(stateDir: string, act: () => T): T {
  const { O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
  let lock;
  try {
    lock = openSync(join(stateDir, '.lock'), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return act();
    const detail = `${JSON.stringify(stateDir)} cannot be used: ${reasonOf(error)}`;
    throw new ExitwatchError('ERR_EXITWATCH_STATE_DIR', detail, { cause: error });
  }
  try {
    if (loadAddon().lockFile(lock)) return act();
    const detail = `a monitor is using ${JSON.stringify(stateDir)}`;
    throw new ExitwatchError('ERR_EXITWATCH_IN_USE', detail);
  } finally {
    closeSync(lock);
  }
}
