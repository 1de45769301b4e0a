import { existsSync } from 'node:fs';

import type { Downgrade } from '../events/exit-event.js';
import { addonRefusal, loadAddon } from '../native/load-addon.js';
import { failureDowngrade } from '../sources/downgrade.js';

import { DescriptorStore } from './descriptor-store.js';
import { refuseNoRecorder } from './no-recorder.js';
import { pinsOf } from './pin-folder.js';
import { openRecorders, type RecorderSize } from './recorder-pins.js';
import { Recordings } from './recordings.js';
import { StoredPidfds } from './stored-pidfds.js';
import { hasStoredRecorder, openStoredRecorder, recordsAll } from './stored-recorder.js';
import type { StoredWatch } from './watch-log.js';

/**
 * What remembers exits while no monitor is running.
 *
 * @see [What ended while nobody watched](../../docs/memory.md)
 */
export type MemoryKind = 'recorder' | 'descriptor-store' | 'none';

/** Of an {@link ExitMonitor}, with its defaults. */
export interface MemoryOptions {
  /** An absolute path. */
  stateDir: string;
  scope: 'watched' | 'all';
  /** The folder of all recorders. */
  pinDir: string;
  size: RecorderSize;
  /** How long the source may hold an exit back. */
  maxDelayMs: number;
}

/** What keeps exits for the next monitor. */
export interface Keeping {
  kind: MemoryKind;
  /** Why there is nothing better; `null` if there is not. */
  downgrade: Downgrade | null;
  recordings: Recordings;
  pidfds: StoredPidfds | null;
}

/** Opens the best that there is for a state directory, which the caller owns. */
export function openKeeping(options: MemoryOptions, watches: readonly StoredWatch[]): Keeping {
  const recordings = new Recordings();
  let downgrade;
  try {
    downgrade = openPinned(recordings, options, watches);
    if (!recordings.isEmpty) return { kind: 'recorder', downgrade, recordings, pidfds: null };
  } catch (error) {
    recordings.close();
    throw error;
  }
  const store = openStore(recordings, options, watches);
  const kind = store.isOpen ? 'descriptor-store' : 'none';
  return { kind, downgrade: store.failure ?? downgrade, recordings, pidfds: store.pidfds };
}

/**
 * What has recorded the exits of all processes until now, which this version can read; `'none'`: nothing. Ask before one is
 * opened.
 */
export function recordedBy(pinDir: string, stateDir: string): MemoryKind {
  if (addonRefusal() !== null || !existsSync(stateDir)) return 'none';
  const recorder = new (loadAddon().Recorder)();
  try {
    if (recorder.open(pinsOf(pinDir, stateDir)) === 0) {
      return recordsAll(recorder) ? 'recorder' : 'none';
    }
    const store = DescriptorStore.of(stateDir);
    return store !== null && hasStoredRecorder(store) ? 'descriptor-store' : 'none';
  } finally {
    recorder.close();
  }
}

/** Returns why there is no recorder, or no better one; `null` if there is. */
function openPinned(
  recordings: Recordings,
  options: MemoryOptions,
  watches: readonly StoredWatch[],
): Downgrade | null {
  const noAddon = addonRefusal();
  if (noAddon !== null) return failureDowngrade(noAddon);
  const { pinDir: root, stateDir } = options;
  try {
    const opened = openRecorders({ root, stateDir, size: sizeOf(options) });
    recordings.addPinned(opened);
    recordings.retain(watches.map(({ identity }) => identity));
    return opened.lacks;
  } catch (error) {
    return refuseNoRecorder(error);
  }
}

/** Without pins, systemd keeps the recorder; without a recorder, pidfds. */
function openStore(
  recordings: Recordings,
  options: MemoryOptions,
  watches: readonly StoredWatch[],
): { isOpen: boolean; pidfds: StoredPidfds | null; failure: Downgrade | null } {
  const { stateDir } = options;
  try {
    const store = addonRefusal() === null ? DescriptorStore.of(stateDir) : null;
    if (store === null) return { isOpen: false, pidfds: null, failure: null };
    const recorder = openStoredRecorder(store, { stateDir, size: sizeOf(options) });
    if (recorder !== null) {
      recordings.add(recorder);
      return { isOpen: true, pidfds: null, failure: null };
    }
    const pidfds = new StoredPidfds(store);
    pidfds.retain(watches);
    return { isOpen: true, pidfds, failure: null };
  } catch (error) {
    recordings.close();
    return { isOpen: false, pidfds: null, failure: refuseNoRecorder(error) };
  }
}

function sizeOf({ scope, size }: MemoryOptions): RecorderSize {
  return scope === 'all' ? size : { ...size, ringBytes: 0 };
}
