/** Lets so much work go on at once; the rest waits, in its order. */
export class Semaphore {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves, or rejects, as the work does. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    // What is done hands its place on.
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
