import type { SignalName } from '../events/wait-status.js';
import type { ProcessIdentity } from '../identity/process-identity.js';

import { signalProcess } from './process-signal.js';
import { ProcessTree, type TreeMember } from './process-tree.js';

/** How many scans may find processes forked before their parents stopped. */
const MOST_ROUNDS = 20;

/** A process and its tree, which stop where they are (SIGSTOP) and go on (SIGCONT). */
export class PausableTree {
  readonly #identity: ProcessIdentity;
  /** `null`: this system does not tell who belongs to it, and only the process itself is reached. */
  readonly #tree: ProcessTree | null;
  /** Also those that are linked to nothing by now. */
  readonly #members: TreeMember[] = [];

  constructor(identity: ProcessIdentity) {
    this.#identity = identity;
    this.#tree = process.platform === 'linux' ? ProcessTree.of(identity) : null;
    if (this.#tree !== null) this.#members.push(this.#tree.root);
  }

  /**
   * Resolves with `false` if the process is gone.
   *
   * Rejects with an `ExitwatchError`: `ERR_EXITWATCH_NOT_PERMITTED`, `…_SYSTEM`, `…_NO_PROC`.
   */
  async pause(): Promise<boolean> {
    const isThere = send(this.#identity, 'SIGSTOP');
    for (let round = 0; isThere && round < MOST_ROUNDS; round++) {
      const found = (await this.#tree?.scan()) ?? [];
      if (found.length === 0) break;
      for (const { identity } of found) send(identity, 'SIGSTOP');
      this.#members.push(...found);
    }
    return isThere;
  }

  /** The same, the other way round. */
  async resume(): Promise<boolean> {
    this.#members.push(...((await this.#tree?.scan()) ?? []));
    for (const { identity } of this.#members) send(identity, 'SIGCONT');
    return send(this.#identity, 'SIGCONT');
  }
}

/** `false`: it is gone. */
function send(identity: ProcessIdentity, signal: SignalName): boolean {
  return signalProcess(identity, signal).liveness === 'alive';
}
