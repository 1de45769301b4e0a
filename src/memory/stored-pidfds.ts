import { closeSync } from 'node:fs';

import { decodeWaitStatus, mayDumpCore } from '../events/wait-status.js';
import type { ExitEvent } from '../events/exit-event.js';
import { unknownExit } from '../events/unknown-exit.js';
import { processTable } from '../identity/platform-table.js';
import { loadAddon } from '../native/load-addon.js';

import type { DescriptorStore } from './descriptor-store.js';
import type { StoredWatch } from './watch-log.js';

/**
 * Pidfds of watched processes in systemd's descriptor store. A pidfd reports the status of its process
 * even after that was reaped (Linux 6.15), but neither when it exited nor who killed it.
 */
export class StoredPidfds {
  readonly #store: DescriptorStore;

  constructor(store: DescriptorStore) {
    this.#store = store;
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_RECORDER_FULL`, `ERR_EXITWATCH_SYSTEM` */
  add({ watch, identity }: StoredWatch): void {
    const addon = loadAddon();
    const fd = addon.openPidfd(identity.pid);
    if (fd === undefined) return; // the watch finds that it is gone
    try {
      const isSame = identity.inode === null || addon.lookAtPidfd(fd).inode === identity.inode;
      if (isSame) this.#store.store(nameOf(watch), fd);
    } finally {
      closeSync(fd);
    }
  }

  forget({ watch }: StoredWatch): void {
    this.#store.remove(nameOf(watch));
  }

  /** Removes all that no watch needs: a crash may have left them. */
  retain(watches: readonly StoredWatch[]): void {
    const needed = new Set(watches.map(({ watch }) => nameOf(watch)));
    for (const name of this.#store.names) {
      if (PIDFD.test(name) && !needed.has(name)) this.#store.remove(name);
    }
  }

  /** The exit of a process that was watched before this one began; `null` if it is not known. */
  exitOf({ watch, identity, at }: StoredWatch): ExitEvent | null {
    const fd = this.#store.descriptor(nameOf(watch));
    if (fd === undefined) return null;
    const { status } = loadAddon().lookAtPidfd(fd);
    if (status === undefined) return null;
    const exitedAt = new Date();
    const { id, pid, startTicks } = identity;
    const event = unknownExit(
      {
        ...{ id, pid, exitedAt, source: 'pidfd' },
        startedAt: processTable().startTime(startTicks),
        uncertaintyMs: Math.max(0, exitedAt.getTime() - at.getTime()),
      },
      'gone-while-unobserved',
    );
    const decoded = decodeWaitStatus(status);
    // A pidfd lacks the core that another thread than the first has dumped.
    const coreDumped =
      decoded.how === 'killed' && mayDumpCore(decoded.signal) ? null : decoded.coreDumped;
    return { ...event, ...decoded, coreDumped, unknownReason: null } as ExitEvent;
  }
}

const PIDFD = /^w\d+$/;

function nameOf(watch: number): string {
  return `w${watch}`;
}
