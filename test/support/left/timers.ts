import type { Leak } from './leak';

/** What is needed here of the global object of tests. */
export type Sandbox = Pick<typeof globalThis, 'process' | 'setTimeout' | 'setInterval'>;

type Make = (call: (...args: unknown[]) => void, ...rest: unknown[]) => NodeJS.Timeout;

const FOLDERS_OF_OTHERS = /node_modules|node:|support.left/;

/**
 * The timers that are made with the global functions of tests. Node.js does not tell which timers
 * there are, and Jest has some of its own.
 */
export class Timers {
  /** Where each was made. */
  readonly #made = new Map<NodeJS.Timeout, Error>();

  constructor(sandbox: Sandbox) {
    sandbox.setTimeout = this.#noting(sandbox.setTimeout, true);
    sandbox.setInterval = this.#noting(sandbox.setInterval, false);
  }

  /** Those that keep Node.js running. */
  left(): Leak[] {
    const left: Leak[] = [];
    for (const [timer, made] of this.#made) {
      if (isOver(timer) || !timer.hasRef()) continue;
      const remove = () => {
        clearTimeout(timer);
      };
      left.push({ kind: 'a timer', name: `made ${placeOf(made)}`, remove });
    }
    return left;
  }

  #noting<T extends object>(original: T, isOnce: boolean): T {
    const make = original as unknown as Make;
    const noting: Make = (call, ...rest) => {
      const timer = make(
        (...args) => {
          if (isOnce) this.#made.delete(timer);
          call(...args);
        },
        ...rest,
      );
      this.#made.set(timer, new Error());
      this.#forgetSome();
      return timer;
    };
    // util.promisify() looks for a property.
    return Object.defineProperties(
      noting,
      Object.getOwnPropertyDescriptors(original),
    ) as unknown as T;
  }

  /** Most are cleared before they come, and must not gather. */
  #forgetSome(): void {
    for (const timer of this.#made.keys()) {
      if (!isOver(timer)) return;
      this.#made.delete(timer);
    }
  }
}

/** Undocumented, but there is no other way to learn it. */
function isOver(timer: NodeJS.Timeout): boolean {
  return (timer as unknown as { _destroyed: boolean })._destroyed;
}

function placeOf({ stack = '' }: Error): string {
  const calls = stack.split('\n').filter((line) => line.includes(' at '));
  return calls.find((line) => !FOLDERS_OF_OTHERS.test(line))?.trim() ?? 'at an unknown place';
}
