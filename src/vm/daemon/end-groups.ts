import { killerOf } from '../../events/ended-by.js';

import type { VmVerdict } from '../verdict/vm-verdict.js';

/** Ends that one process causes within this time belong together. */
const WITHIN_MS = 10_000;

interface Group {
  id: string;
  lastAt: number;
}

/**
 * Groups the ends of virtual machines that somebody else ended together, as a host does when it
 * shuts down: to their manager, they are one event.
 */
export class EndGroups {
  readonly #groups = new Map<string, Group>();

  /** The id of its group's first end; `null`: nobody else ended it, or it is unknown who did. */
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
