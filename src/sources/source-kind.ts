import type { ExitwatchError } from '../common/errors.js';
import type { Downgrade, SourceName } from '../events/exit-event.js';

import type { ExitSource, SourceListener } from './exit-source.js';
import type { SourceReport } from './source-report.js';

export type Scope = 'watched' | 'all';

/** What a source is opened with. */
export interface SourceOptions {
  scope: Scope;
  source: 'auto' | SourceName;
  trace: 'auto' | 'on' | 'off';
  receiveBufferBytes: number;
  queueLimit: number;
  pollIntervalMs: number;
  statusTimeoutMs: number;
  canaryIntervalMs: number;
}

/** What the registry knows of a source: all that the rest of the house has to know of it. */
export interface SourceKind<Report extends SourceReport = SourceReport> {
  readonly name: SourceName;
  /** What people call it. */
  readonly title: string;
  /** What serves where this one cannot; `null`: nothing does. */
  readonly fallback: SourceName | null;
  /** With `source: 'auto'` it goes over to its fallback, and back, by itself. */
  readonly hasFallbackWithin: boolean;
  /** It tells how a process ended, and not only that it is gone. */
  readonly tellsStatus: boolean;
  /** It tells of every process, and not only of those that are watched. */
  readonly tellsAll: boolean;
  /** It has the signal trace beside it. */
  readonly tellsSignals: boolean;
  /** For how long it may hear nothing and be healthy, in ms; `null`: for ever. */
  longestSilenceMs(options: SourceOptions): number | null;
  /** Why it cannot be opened here, as far as that is known without trying; `null`: it may work. */
  refusal(): ExitwatchError | null;
  /**
   * @param downgrade why it is not a better source; `null` where it was asked for
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`
   */
  open(options: SourceOptions, listener: SourceListener, downgrade: Downgrade | null): ExitSource;
  /**
   * Tries it. Rejects with `ERR_EXITWATCH_INVALID_OPTION` if an environment variable has a value that it
   * cannot have.
   */
  probe(): Promise<Report>;
  /** Whether what was found of it is enough for this scope. */
  serves(scope: Scope, report: Report): boolean;
}
