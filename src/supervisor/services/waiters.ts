interface Waiter {
  look: () => void;
  reject: (error: Error) => void;
}

/** Promises that settle once something holds. */
export class Waiters {
  readonly #waiting = new Set<Waiter>();

  /**
   * Resolves with what `look` returns once that is not `undefined`; rejects with what it throws. It
   * looks at once, and at each {@link Waiters.notify}.
   */
  until<T>(look: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        reject,
        look: () => {
          try {
            const found = look();
            if (found === undefined) return;
            this.#waiting.delete(waiter);
            resolve(found);
          } catch (error) {
            this.#waiting.delete(waiter);
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        },
      };
      this.#waiting.add(waiter);
      waiter.look();
    });
  }

  notify(): void {
    for (const waiter of [...this.#waiting]) waiter.look();
  }

  rejectAll(error: Error): void {
    for (const waiter of this.#waiting) waiter.reject(error);
    this.#waiting.clear();
  }
}
