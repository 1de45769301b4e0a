import { closeSync, openSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { ExitwatchError } from '../common/errors.js';
import type { NativeProgram } from '../native/addon.js';
import { loadAddon } from '../native/load-addon.js';

import { pinsOf, removePins } from './recorder-pins.js';

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
    throw new ExitwatchError('ERR_EXITWATCH_SYSTEM', (error as Error).message, { cause: error });
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
    const losses = recorder.losses(false);
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
 * Removes the recorder of a state directory, and those that it has replaced. Returns the folders.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_IN_USE`: a monitor uses it
 */
export function removeRecorder(root: string, stateDir: string): string[] {
  if (isInUse(stateDir)) {
    const detail = `a monitor is using ${JSON.stringify(stateDir)}`;
    throw new ExitwatchError('ERR_EXITWATCH_IN_USE', detail);
  }
  const name = basename(pinsOf(root, stateDir));
  const folders = readdirSync(dirname(pinsOf(root, stateDir)))
    .filter((entry) => entry === name || entry.startsWith(`${name}-previous-`))
    .map((entry) => join(root, entry));
  for (const folder of folders) removePins(folder);
  return folders;
}

function isInUse(stateDir: string): boolean {
  try {
    const lock = openSync(join(stateDir, '.lock'), 'r+');
    try {
      return !loadAddon().lockFile(lock);
    } finally {
      closeSync(lock);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
