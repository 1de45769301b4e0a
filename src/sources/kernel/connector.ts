import { ExitwatchError } from '../../common/errors.js';
import type { SourceReady } from '../../events/source-ready.js';
import { addonRefusal } from '../../native/load-addon.js';
import type { ExitSource } from '../exit-source.js';
import { DEFAULT_SOURCE_OPTIONS } from '../source-defaults.js';
import type { SourceKind } from '../source-kind.js';
import { type ConnectorReport, obstacleOf } from '../source-report.js';

import { KernelSource } from './kernel-source.js';

/**
 * The proc connector, plus a pidfd for each watched process unless only the connector was
 * requested.
 */
export const CONNECTOR: SourceKind<ConnectorReport> = {
  name: 'connector',
  title: 'connector',
  fallback: 'pidfd',
  hasFallbackWithin: true,
  tellsStatus: true,
  tellsAll: true,
  tellsSignals: true,
  // A canary that is due may need the same time again.
  longestSilenceMs: ({ canaryIntervalMs }) => 2 * (canaryIntervalMs || Infinity),
  refusal: addonRefusal,
  open: (options, listener) => new KernelSource(options, listener),
  serves: (_, { available }) => available,
  async probe() {
    let source: ExitSource | undefined;
    try {
      const { filter, downgrade, namesPrograms } = await new Promise<SourceReady>(
        (resolve, reject) => {
          const ignore = () => undefined;
          source = new KernelSource(
            { ...DEFAULT_SOURCE_OPTIONS, source: 'connector' },
            {
              ready: resolve,
              failed: reject,
              exit: ignore,
              signal: ignore,
              gap: ignore,
              source: ignore,
              batchEnd: ignore,
            },
          );
          source.start();
        },
      );
      const watchedSet = source?.stats().watchedSet ?? null;
      return { available: true, obstacle: null, filter, downgrade, watchedSet, namesPrograms };
    } catch (error) {
      if (!(error instanceof ExitwatchError) || error.code === 'ERR_EXITWATCH_INVALID_OPTION') {
        throw error;
      }
      const obstacle = obstacleOf(error);
      const nothing = { filter: null, downgrade: null, watchedSet: null, namesPrograms: false };
      return { available: false, obstacle, ...nothing };
    } finally {
      source?.close();
    }
  },
};
