import { setTimeout as sleep } from 'node:timers/promises';

declare global {
  /** The time of jest's timeout for the current test, by performance.now(): see environment.ts. */
  var testEndsAt: number | undefined;
}

/** Returns what is known when a wait times out, such as what came instead. */
export type Known = () => string;

type Nothing = false | null | undefined;

const LOOKS_EVERY_MS = 2;

/** What has not come for long is looked for less often: others need the processors. */
const PART_OF_WAIT = 0.02;
const SELDOM_MS = 20;

/** After a look that took long, such as a command, it waits for several times as long. */
const REST = 2;
const LONGEST_REST_MS = 500;

/** A test that may take hours says sooner what does not come. */
const MOST_MS = 600_000;

/**
 * Nearly all the time that the test has left. The rest is for the report and for cleaning up, which
 * may also wait.
 */
function patienceMs(): number {
  const { testEndsAt } = globalThis;
  const leftMs = testEndsAt === undefined ? 60_000 : testEndsAt - performance.now();
  return Math.min(MOST_MS, leftMs - Math.min(5000, leftMs / 8));
}

/** Settles like the promise. Rejects if it takes too long, and names what did not come. */
export function arrives<T>(what: string, promise: PromiseLike<T>, known?: Known): Promise<T> {
  const ms = patienceMs();
  const here = new Error();
  let timer: NodeJS.Timeout;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(timeoutError(what, ms, known, here));
    }, ms);
  });
  const arrival = Promise.race([promise, timeout]).finally(() => {
    clearTimeout(timer);
  });
  arrival.catch(() => undefined); // a test that has already failed no longer looks at it
  return arrival;
}

/** Polls until the result is something, and resolves with it. */
export function until<T>(
  what: string,
  look: () => T | Promise<T>,
  known?: Known,
): Promise<Exclude<T, Nothing>> {
  let isOver = false;
  const looking = async () => {
    const since = performance.now();
    for (;;) {
      const began = performance.now();
      const found = await look();
      if (isOver || isSomething(found)) return found as Exclude<T, Nothing>;
      const restMs = Math.min(REST * (performance.now() - began), LONGEST_REST_MS);
      const seldomMs = Math.min(PART_OF_WAIT * (began - since), SELDOM_MS);
      await sleep(Math.max(restMs, seldomMs, LOOKS_EVERY_MS));
    }
  };
  const arrival = arrives(what, looking(), known);
  const stop = () => {
    isOver = true;
  };
  arrival.then(stop, stop);
  return arrival;
}

/** The same, but blocks the event loop. Jest itself could not end such a wait. */
export function blockUntil(what: string, holds: () => boolean, known?: Known): void {
  const ms = patienceMs();
  const deadline = performance.now() + ms;
  const asleep = new Int32Array(new SharedArrayBuffer(4));
  while (!holds()) {
    if (performance.now() > deadline) throw timeoutError(what, ms, known, new Error());
    Atomics.wait(asleep, 0, 0, 20);
  }
}

function isSomething<T>(found: T): found is Exclude<T, Nothing> {
  return found !== false && found !== null && found !== undefined;
}

/**
 * Gives the error the stack of the waiting test: a timer has no useful stack, and frames of this
 * folder would hide the test.
 */
function timeoutError(what: string, ms: number, known: Known | undefined, { stack = '' }: Error) {
  let instead: string;
  try {
    instead = known?.() ?? '';
  } catch (error) {
    instead = String(error); // called by a timer: nothing would catch the error
  }
  const told = instead === '' ? '' : `; instead: ${instead}`;
  const message = `timed out after ${(ms / 1000).toFixed(1)} s waiting for ${what}${told}`;
  const error = new Error(message);
  const calls = stack
    .split('\n')
    .filter((call) => call.includes(' at ') && !call.includes(__dirname));
  error.stack = [`Error: ${message}`, ...calls].join('\n');
  return error;
}
