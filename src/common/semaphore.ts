/** Limits how many tasks run at once; the rest wait in order. */
export class Semaphore {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves or rejects like the work. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    // A task that finishes passes its place on to the next one.
    if (this.#taken < this.#most) this.#taken++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#taken--;
      else next();
    }
  }
}
