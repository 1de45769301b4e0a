import { LONGEST_MS, checkInteger, checkOptionNames, invalidOption } from '../../common/options.js';

/**
 * How long to wait before a process that keeps ending is started again.
 *
 * @see [Services](../../../docs/services.md)
 */
export type BackoffOptions = {
  /** So many starts in a row, the first one included, do not wait. Default 3. */
  freeAttempts?: number;
  /** How long the start after those waits, in ms; each further one waits twice as long. Default 2,000. */
  firstMs?: number;
  /** The longest wait, in ms; default 60,000. */
  capMs?: number;
  /** A run that lived so long, in ms, ends the row. Default 10,000; less than 1,000 counts as 1,000. */
  healthyMs?: number;
  /** Adds up to this part of the wait at random: 0.1 is up to 10 %. Default 0. */
  jitter?: number;
  /** Gives up after so many starts in a row; default: never. */
  giveUpAfter?: number;
};

const NAMES = [
  ...(['freeAttempts', 'firstMs', 'capMs', 'healthyMs', 'jitter', 'giveUpAfter'] as const),
] satisfies (keyof BackoffOptions)[];

/** What ends sooner, again and again, must not be started without a wait. */
const LEAST_HEALTHY_MS = 1000;

/** 2 to the power of this times a millisecond is longer than any cap. */
const MOST_DOUBLINGS = 31;

/** The rule by which a service waits; the number of its attempts is kept elsewhere. */
export class Backoff {
  readonly healthyMs: number;
  readonly #freeAttempts: number;
  readonly #firstMs: number;
  readonly #capMs: number;
  readonly #jitter: number;
  readonly #giveUpAfter: number;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: BackoffOptions = {}) {
    checkOptionNames(options, NAMES);
    const { freeAttempts = 3, firstMs = 2000, capMs = 60_000 } = options;
    const { healthyMs = 10_000, jitter = 0, giveUpAfter } = options;
    this.#freeAttempts = checkInteger('backoff.freeAttempts', freeAttempts, 0, 1_000_000);
    this.#firstMs = checkInteger('backoff.firstMs', firstMs, 0, LONGEST_MS);
    this.#capMs = checkInteger('backoff.capMs', capMs, 0, LONGEST_MS);
    const givenMs = checkInteger('backoff.healthyMs', healthyMs, 0, LONGEST_MS);
    this.healthyMs = Math.max(givenMs, LEAST_HEALTHY_MS);
    if (typeof jitter !== 'number' || !(jitter >= 0 && jitter <= 1)) {
      throw invalidOption('backoff.jitter must be a number from 0 to 1');
    }
    this.#jitter = jitter;
    this.#giveUpAfter =
      giveUpAfter === undefined
        ? Infinity
        : checkInteger('backoff.giveUpAfter', giveUpAfter, 1, Number.MAX_SAFE_INTEGER);
  }

  /** How long the attempt of this number waits, in ms; the first one is 1. */
  delayMs(attempt: number, random: () => number = Math.random): number {
    const late = attempt - this.#freeAttempts;
    if (late <= 0) return 0;
    const doublings = Math.min(late - 1, MOST_DOUBLINGS);
    const delayMs = Math.min(this.#firstMs * 2 ** doublings, this.#capMs);
    return Math.min(LONGEST_MS, Math.round(delayMs * (1 + this.#jitter * random())));
  }

  /** The attempts in a row after a run that lived so long since it really started. */
  attemptsAfter(attempts: number, livedMs: number): number {
    return livedMs >= this.healthyMs ? 0 : attempts;
  }

  /** No attempt follows this one. */
  isLast(attempts: number): boolean {
    return attempts >= this.#giveUpAfter;
  }
}
