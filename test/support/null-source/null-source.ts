import type {
  Armed,
  ExitSource,
  SourceListener,
  SourceStats,
} from '../../../src/sources/exit-source';
import type { SourceKind, SourceOptions } from '../../../src/sources/source-kind';
import { NO_STATS } from '../../../src/monitor/monitor-stats';
import type { SourceName } from '../../../src';

const NAME = 'null' as SourceName;

/** A source that reports nothing. */
class NullSource implements ExitSource {
  readonly #scope: SourceOptions['scope'];
  readonly #listener: SourceListener;

  constructor({ scope }: SourceOptions, listener: SourceListener) {
    this.#scope = scope;
    this.#listener = listener;
  }

  start(): void {
    this.#listener.ready({
      event: 'ready',
      scope: this.#scope,
      source: NAME,
      filter: null,
      downgrade: null,
      namesPrograms: false,
      receiveBufferBytes: null,
      traced: false,
      traceDowngrade: null,
    });
    this.#listener.batchEnd();
  }

  watch = (): Armed => 'without-pidfd';
  unwatch = () => undefined;
  awaitTrace = () => undefined;
  listen = () => undefined;
  stats = (): SourceStats => ({ ...NO_STATS, source: NAME });
  ref = () => undefined;
  unref = () => undefined;
  close = () => undefined;
}

export const NULL: SourceKind = {
  name: NAME,
  title: 'nothing',
  fallback: null,
  hasFallbackWithin: false,
  tellsStatus: false,
  tellsAll: false,
  tellsSignals: false,
  longestSilenceMs: () => null,
  refusal: () => null,
  open: (options, listener) => new NullSource(options, listener),
  probe: () => Promise.resolve({ available: true, obstacle: null }),
  serves: (scope) => scope === 'watched',
};
