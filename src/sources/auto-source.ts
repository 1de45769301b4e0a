import { ExitwatchError } from '../errors.js';
import type { SourceName } from '../exit-event.js';
import type { ProcessIdentity } from '../process-identity.js';

import { failureDowngrade } from './downgrade.js';
import type { Armed, ExitSource, SourceListener, SourceStats } from './exit-source.js';
import { KernelSource } from './kernel-source.js';
import { PollSource } from './poll-source.js';

type Options = ConstructorParameters<typeof KernelSource>[0] &
  ConstructorParameters<typeof PollSource>[0];

/** The kernel as long as it tells; polling where it does not, or not any more. */
export class AutoSource implements ExitSource {
  readonly #options: Options;
  readonly #listener: SourceListener;
  #isStarted = false;
  /** What a source that takes over has to watch. */
  readonly #watched = new Map<string, ProcessIdentity>();
  #current: ExitSource;
  #told: SourceName | null = null;
  #referenced = true;

  /** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
  constructor(options: Options, listener: SourceListener) {
    this.#options = options;
    this.#listener = listener;
    this.#current = new KernelSource(options, {
      ...listener,
      ready: (ready) => {
        this.#told = ready.source;
        listener.ready(ready);
      },
      exit: (event, isTold) => {
        this.#watched.delete(event.id);
        listener.exit(event, isTold);
      },
      source: (change) => {
        this.#told = change.source;
        listener.source(change);
      },
      failed: (error) => {
        this.#poll(error);
      },
    });
  }

  start(): void {
    this.#isStarted = true;
    this.#current.start();
  }

  watch(identity: ProcessIdentity): Armed {
    const armed = this.#watch(identity);
    if (armed !== 'gone') this.#watched.set(identity.id, identity);
    return armed;
  }

  /** Where there are no pidfds, the kernel tells nothing that could be relied upon. */
  #watch(identity: ProcessIdentity): Armed {
    try {
      return this.#current.watch(identity);
    } catch (error) {
      if (!(error instanceof ExitwatchError) || error.code !== 'ERR_EXITWATCH_NO_PIDFD')
        throw error;
      this.#poll(error);
      return this.#current.watch(identity);
    }
  }

  unwatch(identity: ProcessIdentity): void {
    this.#watched.delete(identity.id);
    this.#current.unwatch(identity);
  }

  awaitTrace(timeoutMs: number): void {
    this.#current.awaitTrace(timeoutMs);
  }

  listen(listens: boolean): void {
    this.#current.listen(listens);
  }

  stats(): SourceStats {
    return this.#current.stats();
  }

  ref(): void {
    this.#referenced = true;
    this.#current.ref();
  }

  unref(): void {
    this.#referenced = false;
    this.#current.unref();
  }

  close(): void {
    this.#current.close();
  }

  #poll(error: ExitwatchError): void {
    const { canaryAgeMs } = this.#current.stats();
    this.#current.close();
    const downgrade = failureDowngrade(error);
    const previous = this.#told;
    const poll = new PollSource(
      this.#options,
      {
        ...this.#listener,
        ready: (ready) => {
          if (previous === null) {
            this.#listener.ready(ready);
            return;
          }
          // Who ended since the kernel last told something, and was not watched, is lost.
          const at = new Date();
          const from = new Date(at.getTime() - (canaryAgeMs ?? 0));
          const gap = { event: 'gap', from, to: at, lost: null, recovered: 0 } as const;
          this.#listener.gap({ ...gap, reason: 'silenced' });
          this.#listener.source({
            event: 'source',
            at,
            source: 'poll',
            previous,
            filter: null,
            downgrade,
          });
        },
        exit: (event, isTold) => {
          this.#watched.delete(event.id);
          this.#listener.exit(event, isTold);
        },
        // What keeps the best one from working is what the user can mend.
        failed: () => {
          this.#listener.failed(error);
        },
      },
      downgrade,
    );
    this.#current = poll;
    for (const identity of this.#watched.values()) poll.watch(identity);
    if (!this.#referenced) poll.unref();
    if (this.#isStarted) poll.start();
  }
}
