import type { VmEvidence } from '../evidence/vm-evidence.js';

import { factsOf } from './facts.js';
import { sentenceOf } from './sentences.js';
import type { Cause, Certainty, Initiator, VmVerdict } from './vm-verdict.js';

/** Causes that are the user's own doing, inside the guest. */
const USERS: readonly Cause[] = ['guest-shutdown', 'guest-hibernate'];

/** Writes verdicts, with the facts that they rest on. */
export class VerdictWriter {
  readonly #evidence: VmEvidence;

  constructor(evidence: VmEvidence) {
    this.#evidence = evidence;
  }

  sure(cause: Cause, initiator: Initiator): VmVerdict {
    return this.#write(cause, 'sure', initiator, []);
  }

  /** `others`: what else it may have been. */
  likely(cause: Cause, initiator: Initiator, others: readonly Cause[]): VmVerdict {
    return this.#write(cause, 'likely', initiator, others);
  }

  oneOf(candidates: readonly Cause[]): VmVerdict {
    return this.#write('unknown', 'one-of', 'unknown', candidates);
  }

  unknown(candidates: readonly Cause[]): VmVerdict {
    return this.#write('unknown', 'unknown', 'unknown', candidates);
  }

  #write(
    cause: Cause,
    certainty: Certainty,
    initiator: Initiator,
    others: readonly Cause[],
  ): VmVerdict {
    const { name, exit } = this.#evidence;
    const candidates = [...new Set(cause === 'unknown' ? others : [cause, ...others])];
    return {
      event: 'stopped',
      name,
      cause,
      userShutdown: userShutdown(cause, candidates),
      initiator,
      certainty,
      candidates,
      evidence: factsOf(this.#evidence),
      summary: sentenceOf(this.#evidence, cause, certainty, candidates),
      exit,
    };
  }
}

/**
 * A power-off on request is most likely not the user's own: the answer is `false` even if the
 * candidates differ.
 */
function userShutdown(cause: Cause, candidates: readonly Cause[]): boolean | null {
  if (cause.endsWith('-powerdown')) return false;
  const users = candidates.filter((each) => USERS.includes(each));
  if (users.length === 0) return candidates.length === 0 ? null : false;
  return users.length === candidates.length ? true : null;
}
