import type { SourceOptions } from './source-kind.js';

/** The default options of a source. */
export const DEFAULT_SOURCE_OPTIONS: SourceOptions = {
  scope: 'watched',
  source: 'auto',
  trace: 'auto',
  receiveBufferBytes: 8 * 1024 * 1024,
  queueLimit: 1_048_576,
  pollIntervalMs: 1000,
  statusTimeoutMs: 1000,
  canaryIntervalMs: 10_000,
  maxDelayMs: 0,
  redact: null,
};
