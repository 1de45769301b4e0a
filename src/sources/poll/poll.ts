import { ExitwatchError } from '../../common/errors.js';
import { processTable } from '../../identity/platform-table.js';
import type { SourceKind } from '../source-kind.js';
import { obstacleOf, type PollReport } from '../source-report.js';

import { PollSource } from './poll-source.js';

/** The process table, read at an interval: the last resort. */
export const POLL: SourceKind<PollReport> = {
  name: 'poll',
  title: 'polling',
  fallback: null,
  hasFallbackWithin: false,
  tellsStatus: false,
  tellsAll: true,
  tellsSignals: false,
  longestSilenceMs: ({ pollIntervalMs }) => 3 * pollIntervalMs,
  refusal: () => null,
  open: (options, listener, downgrade) => new PollSource(options, listener, downgrade),
  serves: (scope, { available, by }) => available && (scope === 'watched' || by !== 'signal 0'),
  probe() {
    const table = processTable();
    try {
      const lookup = table.lookNow(process.pid);
      if (lookup === null || lookup === 'unknown') {
        throw new ExitwatchError(
          'ERR_EXITWATCH_NO_PROC',
          'the process table does not contain this process',
        );
      }
      return Promise.resolve({ available: true, obstacle: null, by: table.by });
    } catch (error) {
      if (!(error instanceof ExitwatchError)) throw error;
      return Promise.resolve({ available: false, obstacle: obstacleOf(error), by: table.by });
    }
  },
};
