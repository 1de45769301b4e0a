import { setTimeout as sleep } from 'node:timers/promises';

import { withDeadline } from '../../common/deadline.js';
import { asExitwatchError, type ExitwatchError } from '../../common/errors.js';
import { newPromise } from '../../common/promise-with-resolvers.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { isSameProcess, type ProcessIdentity } from '../../identity/process-identity.js';
import type { Judgement } from '../../supervisor/services/restart-policy.js';
import { readVmRecord, shouldRestart, VmDaemon, type VmVerdict } from '../../vm/index.js';

import type { MachineFolders } from './machine-spec.js';

/** How long an end may take to be judged. */
const LONGEST_MS = 15_000;
const LOOK_MS = 100;

/**
 * Says why a machine ended. It watches the machines by what their hypervisors say, and remembers that: also of
 * ends while we are away.
 */
export class MachineJudge {
  readonly #folders: MachineFolders;
  readonly #daemon: VmDaemon;
  readonly #starting = newPromise<undefined>();
  #isUsable = false;

  /** @param exitOf the parent of a machine knows how it ended, also if nobody saw that */
  constructor(
    folders: MachineFolders,
    pinDir: string | undefined,
    exitOf: (identity: ProcessIdentity) => Promise<ExitEvent | null>,
  ) {
    this.#folders = folders;
    this.#daemon = new VmDaemon({
      controlDir: folders.control,
      stateDir: folders.state,
      recorder: pinDir === undefined ? {} : { pinDir },
      exitOf,
    });
  }

  /** @param warn what limits it */
  async start(warn: (error: ExitwatchError, name: string | null) => void): Promise<void> {
    this.#daemon.on('warning', (error, name) => {
      warn(asExitwatchError(error), name);
    });
    this.#daemon.on('error', (error) => {
      this.#isUsable = false;
      warn(asExitwatchError(error), null);
    });
    try {
      await this.#daemon.start();
      this.#isUsable = true;
    } catch (error) {
      warn(asExitwatchError(error), null);
    }
    this.#starting.resolve(undefined);
  }

  /** Never rejects: what is not known has its reason. */
  async judge(name: string, exit: ExitEvent, identity: ProcessIdentity | null): Promise<Judgement> {
    const deadline = performance.now() + LONGEST_MS;
    await withDeadline(this.#starting.promise, LONGEST_MS);
    let failure = 'nobody could judge it';
    for (;;) {
      const stop = await this.#verdictOn(name, exit, identity).catch((error: unknown) => {
        failure = asExitwatchError(error).message;
        return null;
      });
      if (stop !== null) {
        const { restart, because } = shouldRestart(stop);
        return { restart, because: `${because} (${stop.summary})` };
      }
      if (!this.#isUsable || performance.now() > deadline) {
        return { restart: null, because: `why it ended is unknown: ${failure}` };
      }
      await sleep(LOOK_MS);
    }
  }

  async close(): Promise<void> {
    await this.#daemon.close();
  }

  /** What is on disk, so that it is known to the next one as well. */
  async #verdictOn(
    name: string,
    exit: ExitEvent,
    identity: ProcessIdentity | null,
  ): Promise<VmVerdict | null> {
    const record = await readVmRecord(this.#folders.state, name);
    const stopped = record?.lastStopped;
    if (record === null || stopped == null) return null;
    // The keeper's own identity of a process lacks what only a pidfd can tell.
    const isIt = stopped.id === exit.id || (identity !== null && isSameProcess(stopped, identity));
    return isIt ? record.lastStop : null;
  }
}
