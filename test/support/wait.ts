import { setTimeout as sleep } from 'node:timers/promises';

declare global {
  /** When jest gives up what runs, by performance.now(): see environment.ts. */
  var testEndsAt: number | undefined;
}

/** What there is to say of a wait in vain, such as what came instead. */
export type Known = () => string;

type Nothing = false | null | undefined;

const LOOKS_EVERY_MS = 2;

/** Nearly all that the test has left; the rest is to say so, and to clean up, which may wait as well. */
function patienceMs(): number {
  const { testEndsAt } = globalThis;
  const leftMs = testEndsAt === undefined ? 60_000 : testEndsAt - performance.now();
  return leftMs - Math.min(5000, leftMs / 8);
}

/** What the promise does; it rejects with the name of what did not come in time. */
export function arrives<T>(what: string, promise: PromiseLike<T>, known?: Known): Promise<T> {
  const ms = patienceMs();
  const here = new Error();
  let timer: NodeJS.Timeout;
  const inVain = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(waitedInVain(what, ms, known, here));
    }, ms);
  });
  const arrival = Promise.race([promise, inVain]).finally(() => {
    clearTimeout(timer);
  });
  arrival.catch(() => undefined); // A test that has failed in between does not look at it any more.
  return arrival;
}

/** Looks until there is something; resolves with it. */
export function until<T>(
  what: string,
  look: () => T | Promise<T>,
  known?: Known,
): Promise<Exclude<T, Nothing>> {
  let isOver = false;
  const looking = async () => {
    for (;;) {
      const found = await look();
      if (isOver || isSomething(found)) return found as Exclude<T, Nothing>;
      await sleep(LOOKS_EVERY_MS);
    }
  };
  const arrival = arrives(what, looking(), known);
  const stop = () => {
    isOver = true;
  };
  arrival.then(stop, stop);
  return arrival;
}

/** The same, while the event loop stands still: jest itself could not end that. */
export function blockUntil(what: string, holds: () => boolean, known?: Known): void {
  const ms = patienceMs();
  const deadline = performance.now() + ms;
  const asleep = new Int32Array(new SharedArrayBuffer(4));
  while (!holds()) {
    if (performance.now() > deadline) throw waitedInVain(what, ms, known, new Error());
    Atomics.wait(asleep, 0, 0, 20);
  }
}

function isSomething<T>(found: T): found is Exclude<T, Nothing> {
  return found !== false && found !== null && found !== undefined;
}

/** Its stack leads to the test that waits: a timer has none, and what is in this folder is in between. */
function waitedInVain(what: string, ms: number, known: Known | undefined, { stack = '' }: Error) {
  let instead: string;
  try {
    instead = known?.() ?? '';
  } catch (error) {
    instead = String(error); // A timer calls it: nobody would catch that.
  }
  const message = `waited ${(ms / 1000).toFixed(1)} s in vain for ${what}\n${instead}`.trim();
  const error = new Error(message);
  const calls = stack
    .split('\n')
    .filter((call) => call.includes(' at ') && !call.includes(__dirname));
  error.stack = [`Error: ${message}`, ...calls].join('\n');
  return error;
}
