import type { NativeRecorder, NativeRecorderAbout, RecorderPart } from '../native/addon.js';
import { loadAddon } from '../native/load-addon.js';
import { PACKAGE_VERSION } from '../native/package-version.js';
import { judgeTrial } from '../trace/trial.js';
import { Refusal } from '../native/abi.js';

import type { DescriptorStore } from './descriptor-store.js';
import { LEASE_MS, type RecorderSize } from './recorder-pins.js';

/** Its parts, in the store. */
const PREFIX = 'r-';

/** More than a recorder consists of. */
const MOST_PARTS = 24;

/** The recorder that systemd keeps, or a new one for it to keep; `null`: there can be none. */
export function openStoredRecorder(
  store: DescriptorStore,
  { stateDir, size }: { stateDir: string; size: RecorderSize },
): NativeRecorder | null {
  if (store.names.some((name) => name.startsWith(PREFIX))) {
    const recorder = new (loadAddon().Recorder)();
    const errno = recorder.adopt(partsIn(store));
    const about = recorder.about();
    // An earlier version's goes on until the service is stopped: what it holds is not lost.
    if (errno === 0 && about !== undefined && about.isRecording && hasRing(about, size)) {
      recorder.setLease(LEASE_MS);
      return recorder;
    }
    recorder.close();
    removeStoredRecorder(store);
  }
  if (store.most < MOST_PARTS) return null;
  const owner = process.geteuid?.() ?? 0;
  const fresh = new (loadAddon().Recorder)();
  const { refusal } = fresh.create({ ...size, owner, version: PACKAGE_VERSION, stateDir });
  if (refusal !== Refusal.none) {
    fresh.close();
    return null;
  }
  fresh.setLease(LEASE_MS);
  if (judgeTrial(fresh.trial()) === null) fresh.trust();
  for (const { name, fd } of fresh.parts()) store.store(PREFIX + name, fd);
  return fresh;
}

function hasRing(about: NativeRecorderAbout, { ringBytes }: RecorderSize): boolean {
  return ringBytes === 0 || about.ringBytes > 0;
}

/** Whether systemd holds a recorder of all processes for this state directory that this version can read. */
export function hasStoredRecorder(store: DescriptorStore): boolean {
  const recorder = new (loadAddon().Recorder)();
  try {
    return recorder.adopt(partsIn(store)) === 0 && recordsAll(recorder);
  } finally {
    recorder.close();
  }
}

export function recordsAll(recorder: NativeRecorder): boolean {
  const about = recorder.about();
  return about !== undefined && about.isRecording && about.ringBytes > 0;
}

function partsIn(store: DescriptorStore): RecorderPart[] {
  return store.names.flatMap((name) => {
    const fd = name.startsWith(PREFIX) ? store.descriptor(name) : undefined;
    return fd === undefined ? [] : [{ name: name.slice(PREFIX.length), fd }];
  });
}

/** Its programs end when this process has closed it, too. */
export function removeStoredRecorder(store: DescriptorStore | null): void {
  for (const name of store?.names ?? []) {
    if (name.startsWith(PREFIX)) store?.remove(name);
  }
}
