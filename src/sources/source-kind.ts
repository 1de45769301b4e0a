import type { ExitwatchError } from '../common/errors.js';
import type { Downgrade, SourceName } from '../events/exit-event.js';

import type { Redact } from '../trace/command-lines.js';

import type { ExitSource, SourceListener } from './exit-source.js';
import type { SourceReport } from './source-report.js';

export type Scope = 'watched' | 'all';

/** The options of a source. */
export interface SourceOptions {
  scope: Scope;
  source: 'auto' | SourceName;
  trace: 'auto' | 'on' | 'off';
  receiveBufferBytes: number;
  queueLimit: number;
  pollIntervalMs: number;
  statusTimeoutMs: number;
  canaryIntervalMs: number;
  maxDelayMs: number;
  /** What command lines go through before they are told; `null`: they are not wanted. */
  redact: Redact | null;
}

/** Everything that the registry and the rest of the code know about a kind of source. */
export interface SourceKind<Report extends SourceReport = SourceReport> {
  readonly name: SourceName;
  /** Its name in messages. */
  readonly title: string;
  /** The source to use if this one does not work; `null`: there is none. */
  readonly fallback: SourceName | null;
  /** With `source: 'auto'`, it switches to its fallback and back by itself. */
  readonly hasFallbackWithin: boolean;
  /** It reports how a process ended, not only that it is gone. */
  readonly tellsStatus: boolean;
  /** It reports every process, not only watched ones. */
  readonly tellsAll: boolean;
  /** It comes with the signal trace. */
  readonly tellsSignals: boolean;
  /** How long it may be silent and still be healthy, in ms; `null`: forever. */
  longestSilenceMs(options: SourceOptions): number | null;
  /** Why it cannot be opened here, if that is known without trying; `null`: it may work. */
  refusal(): ExitwatchError | null;
  /**
   * @param downgrade why a better source is not in use; `null` if this one was requested
   * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`
   */
  open(options: SourceOptions, listener: SourceListener, downgrade: Downgrade | null): ExitSource;
  /**
   * Tries it. Rejects with `ERR_EXITWATCH_INVALID_OPTION` if an environment variable has an invalid
   * value.
   */
  probe(): Promise<Report>;
  /** Whether the report shows that it can serve this scope. */
  serves(scope: Scope, report: Report): boolean;
}
