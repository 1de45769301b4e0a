import { ExitwatchError } from '../common/errors.js';
import type { Supervisor } from '../supervisor/index.js';

const EVERY_MS = 10_000;

/** What is done to the logs of services again and again, but not before the last time is over. */
export abstract class LogWork {
  protected readonly supervisor: Supervisor;
  readonly #onError: (service: string, error: ExitwatchError) => void;
  #timer: NodeJS.Timeout | undefined;
  #isWorking = false;
  protected isEnded = false;
  /** Was told, and has not worked since. */
  readonly #failing = new Set<string>();

  constructor(supervisor: Supervisor, onError: (service: string, error: ExitwatchError) => void) {
    this.supervisor = supervisor;
    this.#onError = onError;
  }

  begin(): void {
    this.#timer = setInterval(() => {
      if (this.#isWorking) return;
      this.#isWorking = true;
      void this.work().finally(() => {
        this.#isWorking = false;
      });
    }, EVERY_MS);
    this.#timer.unref();
  }

  end(): void {
    this.isEnded = true;
    clearInterval(this.#timer);
  }

  /** Never rejects. */
  protected abstract work(): Promise<void>;

  protected works(file: string): void {
    this.#failing.delete(file);
  }

  /** Tells once, until it works. */
  protected fails(service: string, file: string, error: ExitwatchError): void {
    if (this.isEnded || this.#failing.has(file)) return;
    this.#failing.add(file);
    this.#onError(service, error);
  }
}
