import type { NativeRecorder } from '../native/addon.js';
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
  const names = store.names.filter((name) => name.startsWith(PREFIX));
  const recorder = new (loadAddon().Recorder)();
  if (names.length > 0) {
    const parts = names.flatMap((name) => {
      const fd = store.descriptor(name);
      return fd === undefined ? [] : [{ name: name.slice(PREFIX.length), fd }];
    });
    const errno = recorder.adopt(parts);
    const about = recorder.about();
    if (errno === 0 && about?.version === PACKAGE_VERSION && about.isRecording) {
      recorder.setLease(LEASE_MS);
      return recorder;
    }
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

/** Its programs end when this process has closed it, too. */
export function removeStoredRecorder(store: DescriptorStore | null): void {
  for (const name of store?.names ?? []) {
    if (name.startsWith(PREFIX)) store?.remove(name);
  }
}
