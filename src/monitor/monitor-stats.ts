import type { SourceStats } from '../sources/exit-source.js';
import { sourceKind } from '../sources/registry.js';
import type { SourceOptions } from '../sources/source-kind.js';

/**
 * Counters since the monitor was created.
 *
 * @see [Options](../../docs/options.md)
 */
export interface MonitorStats extends SourceStats {
  /** Processes under watch now. */
  watches: number;
  /**
   * The monitor is started, and neither closed nor failed. With the connector and canaries, the
   * kernel also sent something within two canary intervals; with polling, the table was read within
   * three poll intervals.
   */
  healthy: boolean;
}

/** Before anything is watched or started. */
export const NO_STATS: SourceStats = {
  received: 0,
  delivered: 0,
  rejected: 0,
  lost: 0,
  gaps: 0,
  queueDepth: 0,
  lastEventAt: null,
  canaryAgeMs: null,
  tableAgeMs: null,
  source: null,
  filter: null,
  watchedSet: null,
  withoutPidfd: 0,
  wakeups: 0,
};

/** Whether the source reported something recently, if it is expected to. */
export function isHeard(stats: SourceStats, options: SourceOptions): boolean {
  if (stats.source === null) return false;
  const longestMs = sourceKind(stats.source).longestSilenceMs(options);
  const ageMs = stats.tableAgeMs ?? stats.canaryAgeMs;
  return longestMs === null || (ageMs !== null && ageMs <= longestMs);
}
