import type { Machine } from './machine';
import type { Random } from './random';

/** A client on the QMP socket: connected at this time, and perhaps cut off before the end. */
export interface Link {
  at: number;
  until: number | null;
  /** Whether it asked at once for the machine's state. */
  asks: boolean;
}

/** Which witnesses there are, and so what can be known. */
export interface View {
  eventLog: boolean;
  link: Link | null;
  exit: 'seen' | 'gone' | 'unseen';
  /** The time since which signals are traced; `null`: they are not. */
  tracedSince: number | null;
  log: boolean;
  pidfile: boolean;
  socket: boolean;
  intents: 'settled' | 'pending' | null;
  ready: boolean;
  command: boolean;
  agent: boolean;
  /** Whether the client asks for the machine's state after each STOP. */
  asksAfterStop: boolean;
}

/** A client that connects within this time counts as having missed nothing. */
export const FROM_START_MS = 1000;
/** The earliest time at which a client can connect, before anything can happen. */
const AT_ONCE_MS = 95;

/** Every witness that this machine can have. */
export function fullView({ options, random, end }: Machine): View {
  const endedAt = end?.at ?? 0;
  const first = AT_ONCE_MS;
  // Before anything happens; early, which may be too late; or much later.
  const at = random.weighted([
    [3, first],
    [1, random.between(first, FROM_START_MS)],
    [2, random.between(first, Math.max(first, endedAt))],
  ]);
  return {
    eventLog: options.eventLog,
    link: options.qmp && at < endedAt ? { at, until: null, asks: true } : null,
    exit: 'seen',
    tracedSince: 0,
    log: true,
    pidfile: true,
    socket: true,
    intents: 'settled',
    ready: true,
    command: true,
    agent: true,
    asksAfterStop: true,
  };
}

/** The same view with a little less. What is removed does not come back. */
export function withLess(view: View, machine: Machine): View {
  const { random } = machine;
  const link = view.link && lessOfLink(view.link, machine);
  const steps: Partial<View>[] = [];
  const add = (is: boolean, step: Partial<View>) => {
    if (is) steps.push(step);
  };
  add(view.eventLog, { eventLog: false });
  add(view.link !== null, { link });
  add(view.exit === 'seen', { exit: 'gone', tracedSince: null });
  add(view.exit === 'gone', { exit: 'unseen' });
  add(view.tracedSince !== null, { tracedSince: lessOfTrace(view.tracedSince, machine) });
  add(view.log, { log: false });
  add(view.pidfile, { pidfile: false });
  add(view.socket, { socket: false });
  add(view.intents === 'settled', { intents: 'pending' });
  add(view.intents === 'pending', { intents: null });
  add(view.ready, { ready: false });
  add(view.command, { command: false });
  add(view.agent, { agent: false });
  add(view.asksAfterStop, { asksAfterStop: false });
  const step = steps[random.between(0, steps.length - 1)];
  return { ...view, ...step };
}

function lessOfLink(link: Link, { random, end }: Machine): Link | null {
  if (link.until === null && random.chance(0.3)) {
    return { ...link, until: random.between(link.at, end?.at ?? link.at) };
  }
  return link.asks && random.chance(0.5) ? { ...link, asks: false } : null;
}

function lessOfTrace(since: number | null, { random, end }: Machine): number | null {
  if (since !== 0 || end === null || !random.chance(0.4)) return null;
  return random.between(1, Math.max(1, end.at - 2));
}

/**
 * From the full view, or slightly less, down to almost nothing. Each view contains the next one.
 */
export function chainOf(machine: Machine, random: Random): View[] {
  let view = fullView(machine);
  const skipped = random.pick([0, 0, 0, 2, 5]);
  for (let each = 0; each < skipped; each++) view = withLess(view, machine);
  const chain = [view];
  for (let each = 0; each < 5; each++) {
    const steps = random.pick([1, 1, 2, 3]);
    for (let step = 0; step < steps; step++) view = withLess(view, machine);
    chain.push(view);
  }
  return chain;
}
