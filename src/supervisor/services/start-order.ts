import { invalidOption } from '../../common/options.js';

import type { ServiceSpec } from './service-spec.js';

/** What the order of others depends on. */
export interface Ordered {
  readonly name: string;
  /** The services that it starts after. */
  readonly after: readonly string[];
  /** It is not ready, but is expected to be. */
  readonly isComing: boolean;
  /** Something of it runs that is to be stopped for good, and its stop has not failed. */
  readonly isGoing: boolean;
}

interface Waiting {
  others: readonly string[];
  wake: () => void;
}

/**
 * Whether each service can have its turn.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` for a name that no service has, and for a circle
 */
export function checkOrder(specs: readonly ServiceSpec[]): void {
  const left = new Map(specs.map(({ name, after = [] }) => [name, after]));
  for (const [name, after] of left) {
    const missing = after.find((other) => !left.has(other));
    if (missing === undefined) continue;
    const detail = `after names ${JSON.stringify(missing)}, which is no service`;
    throw invalidOption(`service ${JSON.stringify(name)}: ${detail}`);
  }
  for (let size = -1; size !== left.size;) {
    size = left.size;
    for (const [name, after] of left)
      if (!after.some((other) => left.has(other))) left.delete(name);
  }
  const [first] = left.keys();
  if (first === undefined) return;
  const circle = circleFrom(first, left);
  throw invalidOption(
    `service ${JSON.stringify(circle[0])}: after goes in a circle: ${circle.join(' after ')}`,
  );
}

/** @param left each is after another one of them */
function circleFrom(first: string, left: ReadonlyMap<string, readonly string[]>): string[] {
  const way: string[] = [];
  for (let at = first; ; at = left.get(at)?.find((other) => left.has(other)) ?? first) {
    const begin = way.indexOf(at);
    way.push(at);
    if (begin !== -1) return way.slice(begin);
  }
}

/** Who waits for whom: services start in the order of `after`, and stop in the reverse one. */
export class StartOrder {
  readonly #services: ReadonlyMap<string, { ordered: Ordered }>;
  readonly #waiting = new Map<string, Waiting>();

  constructor(services: ReadonlyMap<string, { ordered: Ordered }>) {
    this.#services = services;
  }

  /** Those that must be ready before it starts. Who is not going to run keeps nobody waiting. */
  startBlockers({ after }: Ordered): string[] {
    return after.filter((other) => this.#services.get(other)?.ordered.isComing === true);
  }

  /** Those that must be gone before it is stopped. */
  stopBlockers({ name }: Ordered): string[] {
    const isBefore = (other: Ordered) =>
      other.name !== name &&
      other.isGoing &&
      other.after.includes(name) &&
      // One that was replaced in the meantime may have an order of before.
      !this.#isWaiting(other.name, name);
    const all = [...this.#services.values()].map(({ ordered }) => ordered);
    return all.filter(isBefore).map((other) => other.name);
  }

  /** From now on it waits for these, and is woken when one of them has changed. */
  wait(name: string, others: readonly string[], wake: () => void): void {
    if (others.length === 0) this.#waiting.delete(name);
    else this.#waiting.set(name, { others, wake });
  }

  /** Whom it waits for. */
  waitsFor(name: string): string[] {
    return [...(this.#waiting.get(name)?.others ?? [])];
  }

  /** Something about it has changed. */
  onMoved(name: string): void {
    for (const { others, wake } of this.#waiting.values()) if (others.includes(name)) wake();
  }

  #isWaiting(name: string, other: string): boolean {
    const seen = new Set<string>();
    const ahead = [name];
    for (const each of ahead) {
      if (each === other) return true;
      if (seen.has(each)) continue;
      seen.add(each);
      ahead.push(...this.waitsFor(each));
    }
    return false;
  }
}
