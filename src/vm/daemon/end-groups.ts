import { killerOf } from '../../events/ended-by.js';

import type { VmVerdict } from '../verdict/vm-verdict.js';

/** Ends by one and the same hand that follow each other so closely belong together. */
const WITHIN_MS = 10_000;

interface Group {
  id: string;
  lastAt: number;
}

/**
 * Virtual machines that somebody else has ended together, as a host does when it is shut down: their ends
 * are one event to their manager.
 */
export class EndGroups {
  readonly #groups = new Map<string, Group>();

  /** The id of the first end of its group; `null`: it was not somebody else's doing, or nobody knows whose. */
  of(id: string, stop: VmVerdict): string | null {
    const hand = handOf(stop);
    if (hand === null) return null;
    const at = stop.exit?.exitedAt.getTime() ?? Date.now();
    for (const [each, { lastAt }] of this.#groups) {
      if (at - lastAt > WITHIN_MS) this.#groups.delete(each);
    }
    const group = this.#groups.get(hand) ?? { id, lastAt: at };
    group.lastAt = Math.max(group.lastAt, at);
    this.#groups.set(hand, group);
    return group.id;
  }
}

/** Who sent the signal. */
function handOf({ initiator, exit }: VmVerdict): string | null {
  if (initiator !== 'host' || exit === null) return null;
  const sender = killerOf(exit) ?? exit.signalsReceived.at(-1) ?? null;
  return sender?.pid == null ? null : `${sender.pid}/${sender.name}`;
}
