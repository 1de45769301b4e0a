import type { ExitwatchError } from '../../common/errors.js';

import type { Clock } from './clock.js';

const ERROR_RETRY_MS = 10_000;
const TRANSIENT_RETRY_MS = 1000;
const RESYNC_MS = 60_000;

/** Whose steps a loop takes. */
export interface LoopHost {
  readonly clock: Clock;
  step(): Promise<void>;
  /** It was woken, and a step is under way. */
  onBusy(): void;
  /** A step is over. */
  onStep(): void;
  onError(error: unknown): void;
  /** A request was served after so long. */
  countLatency(ms: number): void;
}

/** Takes one step at a time, for as long as there is something to do. */
export class WorkLoop {
  readonly #host: LoopHost;
  #isLooping = false;
  #isDirty = false;
  #isEnded = false;
  #cancelTimer: (() => void) | undefined;
  #requestedAtMs: number | null = null;

  constructor(host: LoopHost) {
    this.#host = host;
  }

  /** No step follows, and what is under way should do nothing more. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Since when a request waits to be served, by the clock; `null`: none does. */
  get requestedAtMs(): number | null {
    return this.#requestedAtMs;
  }

  wake(): void {
    this.#isDirty = true;
    if (this.#isEnded) return;
    if (this.#isLooping) {
      this.#host.onBusy();
      return;
    }
    this.#isLooping = true;
    void this.#run();
  }

  /** The same for somebody who waits. */
  request(): void {
    this.#requestedAtMs ??= this.#host.clock.now();
    this.wake();
    this.#host.onStep();
  }

  wakeIn(ms: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#host.clock.after(ms, () => {
      this.wake();
    });
  }

  end(): void {
    this.#isEnded = true;
    this.#cancelTimer?.();
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // what is asked in one go is served as one
    while (this.#isDirty && !this.#isEnded) {
      this.#isDirty = false;
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
      if (this.#requestedAtMs !== null) {
        this.#host.countLatency(this.#host.clock.now() - this.#requestedAtMs);
        this.#requestedAtMs = null;
      }
      try {
        await this.#host.step();
      } catch (error) {
        if (this.isEnded) break;
        this.#host.onError(error);
        const { code } = error as ExitwatchError;
        const retryMs = code === 'ERR_EXITWATCH_KEEPER' ? TRANSIENT_RETRY_MS : ERROR_RETRY_MS;
        this.wakeIn(retryMs * (1 + Math.random() / 10));
      }
      this.#host.onStep();
    }
    this.#isLooping = false;
    // Looks again now and then, in case that something was missed.
    if (!this.#isEnded && this.#cancelTimer === undefined) {
      this.wakeIn(RESYNC_MS * (1 + Math.random() / 10));
    }
  }
}
